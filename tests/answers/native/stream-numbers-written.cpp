// Writes a table of numbers.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

static void write(std::ofstream& out, const std::vector<double>& row) {
#ifdef FIXED
    static std::vector<char> line;
    line.resize(row.size() * 32);
    char* at = line.data();
    for (double value : row) {
        at = std::to_chars(at, line.data() + line.size(), value, std::chars_format::general, 6).ptr;
        *at++ = ' ';
    }
    *at++ = '\n';
    out.write(line.data(), at - line.data());
#else
    for (double value : row) {
        out << value << ' ';
    }
    out << '\n';
#endif
}

int main(int, char** words) {
    const int rounds = int(6'000 * std::atof(words[1]));
    std::vector<double> row;
    for (int n = 0; n < 1000; n++) row.push_back(n * 0.37);
    std::ofstream out("/dev/null");
    for (int n = 0; n < rounds; n++) write(out, row);
    std::printf("%d\n", rounds);
}
