// A power whose exponent is 3 each time, which the compiler does not know; mended, it is another one each time.
#include <cmath>
#include <cstdio>
#include <cstdlib>

struct Law {
  double exponent;
};

__attribute__((noinline)) static double energy(const Law *laws, const double *at, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += std::pow(at[i], laws[i].exponent);
  return sum;
}

int main(int, char **argv) {
  static Law laws[4096];
  static double at[4096];
  for (int i = 0; i < 4096; ++i) {
    at[i] = 1.0 + i * 1e-3;
#ifdef FIXED
    laws[i].exponent = 1.5 + i * 1e-4;
#else
    laws[i].exponent = 3;
#endif
  }
  double sum = 0;
  for (int round = 0; round < std::atoi(argv[1]); ++round) sum += energy(laws, at, 4096);
  std::printf("%f\n", sum);
}
