// Throws dice.
#include <cstdio>
#include <cstdlib>
#include <random>

static int dice() {
#ifdef FIXED
    static std::mt19937 source{std::random_device{}()};
#else
    static std::random_device source;
#endif
    return int(source() % 6u) + 1;
}

int main(int, char** words) {
    const int count = int(40'000 * std::atof(words[1]));
    long sum = 0;
    for (int n = 0; n < count; n++) sum += dice();
    std::printf("%d\n", sum > 3.4 * count);
}
