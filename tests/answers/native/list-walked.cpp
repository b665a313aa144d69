#include <cstdio>
#include <cstdlib>
#include <list>
#include <vector>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
#ifdef FIXED
  std::vector<int> v;
#else
  std::list<int> v; 
#endif
  for (int i = 0; i < 200000; ++i) v.push_back(i);
#ifndef FIXED
  v.sort([](int a, int b) { return (a * 2654435761u) % 1000003 < (b * 2654435761u) % 1000003; });
#endif
  long long t = 0;
  for (int k = 0; k < 150 * size; ++k) for (int x : v) t += x;
  printf("%lld\n", t);
}
