// A function takes a grid by value, and reads three of its cells.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Grid {
  int width, height;
  std::vector<double> cells;
};

#ifdef FIXED
__attribute__((noinline)) static double around(const Grid &grid, int x, int y) {
#else
__attribute__((noinline)) static double around(Grid grid, int x, int y) {
#endif
  double sum = 0;
  for (int row = y; row < y + 3; ++row) sum += grid.cells[row % grid.height * grid.width + x];
  return sum;
}

int main(int, char **argv) {
  const int rounds = int(60 * std::atof(argv[1]));
  Grid grid{100, 100, std::vector<double>(10000, 1.5)};
  double sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int at = 0; at < 10000; ++at) {
      sum += around(grid, at % 100, at / 100);
    }
  }
  std::printf("%f\n", sum);
}
