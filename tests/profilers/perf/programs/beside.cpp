#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#ifdef FIXED
struct alignas(64) Sum { volatile long value = 0; };
#else
struct Sum { volatile long value = 0; };
#endif
int main(int argc, char **argv) {
  size_t n = argc > 1 ? atol(argv[1]) : 400000000;
  static Sum sums[4];
  std::vector<int> d(1 << 16); for (size_t i = 0; i < d.size(); i++) d[i] = i % 97;
  std::vector<std::thread> t;
  for (int k = 0; k < 2; k++) t.emplace_back([&, k] { for (size_t i = 0; i < n / 2; i++) sums[k].value += d[i & 0xffff]; });
  for (auto &o : t) o.join();
  printf("%ld\n", (long)(sums[0].value + sums[1].value));
}
