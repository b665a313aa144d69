// Counts the lines of a file.
#include <cstdio>
#include <cstdlib>

static long lines(std::FILE* file) {
    long count = 0;
#ifdef FIXED
    char block[1 << 16];
    while (std::size_t size = std::fread(block, 1, sizeof block, file))
        for (std::size_t n = 0; n < size; n++) count += block[n] == '\n';
#else
    int character;
    while ((character = std::fgetc(file)) != EOF) count += character == '\n';
#endif
    return count;
}

int main(int, char** words) {
    const int rounds = int(300 * std::atof(words[1]));
    std::FILE* file = std::tmpfile();
    for (int n = 0; n < 100'000; n++) std::fputs("0123456789abcdef\n", file);
    long sum = 0;
    for (int n = 0; n < rounds; n++) {
        std::rewind(file);
        sum += lines(file);
    }
    std::printf("%ld\n", sum);
}
