#include <cstdio>
#include <cstdlib>
#include <vector>
#include <deque>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
  int n = 200000 * size;
#ifdef FIXED
  std::deque<int> v;
#else
  std::vector<int> v;
#endif
  for (int i = 0; i < n; ++i) v.push_back(i);
  long long t = 0;
  while (!v.empty()) {
    t += v.front();
#ifdef FIXED
    v.pop_front();
#else
    v.erase(v.begin());
#endif
  }
  printf("%lld\n", t);
}
