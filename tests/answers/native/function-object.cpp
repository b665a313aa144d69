// Adds up numbers through a callback.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#ifdef FIXED
template <class F>
void each(const std::vector<int>& numbers, F&& f) {
#else
__attribute__((noinline)) void each(const std::vector<int>& numbers, const std::function<void(int)>& f) {
#endif
    for (int number : numbers)
        f(number);
}

int main(int, char** words) {
    const int rounds = int(600 * std::atof(words[1]));
    std::vector<int> numbers(1'000'000);
    for (std::size_t n = 0; n < numbers.size(); n++) numbers[n] = int(n % 1000);
    long sum = 0;
    for (int n = 0; n < rounds; n++) each(numbers, [&](int number) { sum += number ^ n; });
    std::printf("%ld\n", sum);
}
