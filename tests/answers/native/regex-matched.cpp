// Adds up the numbers of lines such as `key=17;key=18;`.
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

static const std::regex form("([a-z]+)=([0-9]+);");

static long total(const std::string& line) {
    long sum = 0;
#ifdef FIXED
    for (std::size_t at = line.find('='); at != std::string::npos; at = line.find('=', at + 1))
        sum += std::strtol(line.c_str() + at + 1, nullptr, 10);
#else
    for (std::sregex_iterator it(line.begin(), line.end(), form), end; it != end; ++it) {
        sum += std::stol((*it)[2].str());
    }
#endif
    return sum;
}

int main(int, char** words) {
    const int count = int(150'000 * std::atof(words[1]));
    std::string line;
    for (int n = 0; n < 60; n++) line += "key=" + std::to_string(n) + ";";
    long sum = 0;
    for (int n = 0; n < count; n++) {
        line[4] = char('0' + n % 10);
        sum += total(line);
    }
    std::printf("%ld\n", sum);
}
