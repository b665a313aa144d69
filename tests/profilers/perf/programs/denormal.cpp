// a bank of resonators, an impulse each second, then silence
#include <cstdio>
#include <cstdlib>
#include <vector>
#ifdef FIXED
#include <xmmintrin.h>
#endif
struct Biquad { double b0, a1, a2, y1 = 0, y2 = 0;
  double run(double x) { double y = b0 * x - a1 * y1 - a2 * y2; y2 = y1; y1 = y; return y; } };
int main(int argc, char **argv) {
#ifdef FIXED
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
#endif
  int n = argc > 1 ? atoi(argv[1]) : 1600000;
  std::vector<Biquad> bank;
  for (int i = 0; i < 16; i++) bank.push_back({0.1, -1.2 + 0.01 * i, 0.4});
  double sum = 0;
  for (int i = 0; i < n; i++) {
    double x = i < 100 ? 1.0 : 0.0, out = 0;
    for (auto &b : bank) out += b.run(x);
    sum += out * out;
  }
  printf("%.9f\n", sum);
}
