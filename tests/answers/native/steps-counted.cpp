// The elements of a list are asked for by their number.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <list>
#include <vector>

#ifdef FIXED
using Numbers = std::vector<int>;
#else
using Numbers = std::list<int>;
#endif

static int number(const Numbers &numbers, int at) {
  auto place = numbers.begin();
  std::advance(place, at);
  return *place;
}

int main(int, char **argv) {
  const int rounds = int(120 * std::atof(argv[1]));
  Numbers numbers;
  for (int i = 0; i < 3000; ++i) numbers.push_back(i * 7 % 1001);
  long sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int at = 0; at < 3000; ++at) sum += number(numbers, at) ^ round;
  }
  std::printf("%ld\n", sum);
}
