// Reads a column of a table of numbers.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static double number(const std::string& text) {
#ifdef FIXED
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
#else
    return std::strtod(text.c_str(), nullptr);
#endif
}

int main(int, char** words) {
    const int rounds = int(20'000 * std::atof(words[1]));
    std::vector<std::string> column;
    for (int n = 0; n < 1000; n++) column.push_back(std::to_string(n * 0.372911));
    double sum = 0;
    for (int n = 0; n < rounds; n++)
        for (auto& text : column) sum += number(text);
    std::printf("%.3f\n", sum);
}
