// Counts how often each number comes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <unordered_map>

int main(int, char** words) {
    const int count = int(1'500'000 * std::atof(words[1]));
#ifdef FIXED
    std::unordered_map<std::uint64_t, int> seen;
#else
    std::map<std::uint64_t, int> seen;
#endif
    std::uint64_t x = 1;
    for (int n = 0; n < count; n++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        seen[x >> 46]++;
    }
    std::printf("%zu\n", seen.size());
}
