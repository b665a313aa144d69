#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
std::atomic<long> hits{0};
void inside(unsigned seed, long n) {
  unsigned long x = seed * 2654435761ul + 1; long mine = 0;
  for (long i = 0; i < n; i++) {
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    double a = (x & 0xffffffff) / 4294967296.0, b = (x >> 32) / 4294967296.0;
    if (a * a + b * b < 1) {
#ifdef FIXED
      mine++;
#else
      hits.fetch_add(1);
#endif
    }
  }
  if (mine) hits += mine;
}
int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 60000000;
  std::vector<std::thread> t; for (int k = 0; k < 2; k++) t.emplace_back(inside, k + 1, n / 2);
  for (auto &o : t) o.join();
  printf("%.6f\n", 4.0 * hits / n);
}
