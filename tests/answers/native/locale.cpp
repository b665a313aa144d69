// Compares words without their case.
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <string>
#include <vector>

static std::string lower(const std::string& word) {
    std::string out;
#ifdef FIXED
    for (char one : word) out += one >= 'A' && one <= 'Z' ? char(one + 32) : one;
#else
    for (char one : word) out += std::tolower(one, std::locale());
#endif
    return out;
}

int main(int, char** words) {
    const int count = int(6'000'000 * std::atof(words[1]));
    std::vector<std::string> names = {"Anna Berg", "Carl DORN", "Emil Fuchs", "Greta HOLZ"};
    long same = 0;
    for (int n = 0; n < count; n++) same += lower(names[n % 4]) == "carl dorn";
    std::printf("%ld\n", same);
}
