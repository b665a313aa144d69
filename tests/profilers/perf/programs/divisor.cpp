#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
struct Ring { std::vector<double> data; size_t head = 0; explicit Ring(size_t n) : data(n, 0.0) {}
  void push(double x) {
    data[head] = x;
#ifdef FIXED
    if (++head == data.size()) head = 0;
#else
    head = (head + 1) % data.size();
#endif
  }
  double at(size_t back) const {
#ifdef FIXED
    size_t k = head + data.size() - 1 - back; if (k >= data.size()) k -= data.size(); return data[k];
#else
    return data[(head + data.size() - 1 - back) % data.size()];
#endif
  } };
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1500000;
  Ring r(argc > 2 ? atoi(argv[2]) : 101); double s = 0;
  for (int i = 0; i < n; i++) { r.push(i % 17); double a = 0; for (size_t k = 0; k < 100; k++) a += r.at(k); s += a; }
  printf("%.3f\n", s);
}
