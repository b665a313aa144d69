// Groups the keys of each batch.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_set>

static std::size_t different(std::uint64_t seed) {
    std::unordered_set<std::uint64_t> keys;
#ifdef FIXED
    keys.reserve(200'000);
#endif
    for (std::uint64_t n = 0; n < 200'000; n++) {
        keys.insert((n * 2654435761u + seed) ^ (n << 20));
    }
    return keys.size();
}

int main(int, char** words) {
    const int rounds = int(40 * std::atof(words[1]));
    std::size_t sum = 0;
    for (int n = 0; n < rounds; n++) sum += different(n);
    std::printf("%zu\n", sum);
}
