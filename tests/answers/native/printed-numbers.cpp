// Makes a text of coordinates.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

static void add(std::string& text, double x) {
#ifdef FIXED
    char number[64];
    text.append(number, std::to_chars(number, number + sizeof number, x, std::chars_format::fixed, 6).ptr);
#else
    text += std::to_string(x);
#endif
    text += ' ';
}

int main(int, char** words) {
    const int count = int(5'000'000 * std::atof(words[1]));
    std::string text;
    std::size_t size = 0;
    for (int n = 0; n < count; n++) {
        add(text, n * 0.37);
        if (text.size() > 60'000) {
            size += text.size();
            text.clear();
        }
    }
    std::printf("%zu\n", size + text.size());
}
