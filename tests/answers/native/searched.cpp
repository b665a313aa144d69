#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <unordered_set>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
  int n = 90000 * size; long long t = 0;
#ifdef FIXED
  std::unordered_set<int> seen;
#else
  std::vector<int> seen;
#endif
  for (int i = 0; i < n; ++i) {
    int x = (int)((i * 2654435761u) % 1000003);
#ifdef FIXED
    if (seen.find(x) == seen.end()) { seen.insert(x); t += x; }
#else
    if (std::find(seen.begin(), seen.end(), x) == seen.end()) { seen.push_back(x); t += x; }
#endif
  }
  printf("%lld\n", t);
}
