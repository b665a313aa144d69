#include <cstdio>
#include <cstdlib>
#include <string>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
  std::string s;
  for (int i = 0; i < 160000 * size; ++i)
#ifdef FIXED
    s += std::to_string(i % 10);
#else
    s = s + std::to_string(i % 10);
#endif
  printf("%zu\n", s.size());
}
