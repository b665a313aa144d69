// Times of events are kept in order, and the events until a time are asked for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <vector>

#ifdef FIXED
using Times = std::vector<long>;
#else
using Times = std::list<long>;
#endif

static long until(const Times &times, long when) {
  const auto end = std::upper_bound(times.begin(), times.end(), when);
  return end == times.begin() ? 0 : *std::prev(end);
}

int main(int, char **argv) {
  const int questions = int(50000 * std::atof(argv[1]));
  Times times;
  for (long n = 0; n < 3000; ++n) times.push_back(n * 31);
  long sum = 0;
  for (long n = 0; n < questions; ++n) sum += until(times, n * 7919 % 93000);
  std::printf("%ld\n", sum);
}
