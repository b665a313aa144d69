// Orders rest at prices, and each new one looks for the next price above it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

using Levels = std::map<long, long>;

static Levels::const_iterator above(const Levels &levels, long price) {
#ifdef FIXED
  return levels.lower_bound(price);
#else
  return std::lower_bound(levels.begin(), levels.end(), price,
                          [](const Levels::value_type &level, long p) { return level.first < p; });
#endif
}

int main(int, char **argv) {
  const int orders = int(16000 * std::atof(argv[1]));
  Levels levels;
  for (long n = 0; n < 4000; ++n) levels[n * 7919 % 100003] = n;
  long sum = 0;
  for (long n = 0; n < orders; ++n) {
    const auto found = above(levels, n * 104729 % 100003);
    if (found != levels.end()) sum += found->second;
  }
  std::printf("%ld\n", sum);
}
