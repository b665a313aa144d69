#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
struct Order { long id; char customer[64]; char address[96]; double price; int quantity; int region; char note[24]; };
int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 60; const size_t n = 400000;
#ifdef FIXED
  std::vector<double> price(n);
  for (size_t i = 0; i < n; i++) price[i] = (double)(i * 7919 % 1000);
  double s = 0;
  for (int r = 0; r < rounds; r++) for (double p : price) { double q = p * (1.0 + 0.001 * r); s += q > 500 ? q : 0; }
#else
  std::vector<Order> orders(n);
  for (size_t i = 0; i < n; i++) orders[i].price = (double)(i * 7919 % 1000);
  double s = 0;
  for (int r = 0; r < rounds; r++) for (const Order &o : orders) { double q = o.price * (1.0 + 0.001 * r); s += q > 500 ? q : 0; }
#endif
  printf("%.3f\n", s);
}
