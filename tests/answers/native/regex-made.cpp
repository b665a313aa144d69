// Checks codes of articles by their form.
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

static bool is_code(const std::string& word) {
#ifdef FIXED
    static
#endif
        const std::regex form("^[a-z]{2}-[0-9]{3,5}$");
    return std::regex_match(word, form);
}

int main(int, char** words) {
    const int count = int(30'000 * std::atof(words[1]));
    long good = 0;
    for (int n = 0; n < count; n++) good += is_code("ab-" + std::to_string(n));
    std::printf("%ld\n", good);
}
