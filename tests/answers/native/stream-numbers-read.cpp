// Adds up the numbers of a text.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

static double total(const std::string& text) {
    double sum = 0, value = 0;
#ifdef FIXED
    const char *at = text.data(), *end = at + text.size();
    while (at < end) {
        at = std::from_chars(at, end, value).ptr + 1;
        sum += value;
    }
#else
    std::istringstream in(text);
    while (in >> value) sum += value;
#endif
    return sum;
}

int main(int, char** words) {
    const int rounds = int(10'000 * std::atof(words[1]));
    std::string text;
    for (int n = 0; n < 1000; n++) text += std::to_string(n * 0.37) + " ";
    double sum = 0;
    for (int n = 0; n < rounds; n++) sum += total(text);
    std::printf("%.3f\n", sum);
}
