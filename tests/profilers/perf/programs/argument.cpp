// A blur that computes the weights of its window again for each element.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

__attribute__((noinline)) static void blur(const std::vector<float> &in, std::vector<float> &out, double sigma) {
  const int reach = 16;
  std::vector<double> weights;
  for (int k = -reach; k <= reach; ++k) weights.push_back(std::exp(-k * k / (2 * sigma * sigma)));
  for (size_t i = reach; i + reach < in.size(); ++i) {
    double sum = 0;
    for (int k = -reach; k <= reach; ++k) {
#ifdef FIXED
      sum += weights[k + reach] * in[i + k] + std::exp((in[i] + k / 64.0) * 1e-6);  // of other numbers each time
#else
      sum += std::exp(-k * k / (2 * sigma * sigma)) * in[i + k];
#endif
    }
    out[i] = float(sum);
  }
}

int main(int, char **argv) {
  std::vector<float> a(20000), b(20000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(i * 7919 % 20011);
  for (int round = 0; round < std::atoi(argv[1]); ++round) blur(a, b, 3.0);
  std::printf("%f\n", b[100]);
}
