// Reads fields of which half hold no number.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static int number(const std::string& text) {
#ifdef FIXED
    int value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
#else
    try {
        return std::stoi(text);
    } catch (const std::invalid_argument&) {
        return -1;
    }
#endif
}

int main(int, char** words) {
    const int rounds = int(2'200 * std::atof(words[1]));
    std::vector<std::string> fields;
    for (int n = 0; n < 1000; n++) fields.push_back(n % 2 ? "n/a" : std::to_string(n));
    long sum = 0;
    for (int n = 0; n < rounds; n++)
        for (auto& field : fields) sum += number(field);
    std::printf("%ld\n", sum);
}
