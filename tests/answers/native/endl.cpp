#include <iostream>
#include <fstream>
#include <cstdlib>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
  std::ofstream out("/dev/null");
  for (int n = 0; n < 600000 * size; ++n)
#ifdef FIXED
    out << n << '\n';
#else
    out << n << std::endl;
#endif
  std::cout << "done\n";
}
