#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <unistd.h>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
  FILE *file = tmpfile();
  for (int n = 0; n < 30000; ++n) fputs("12345 2345 345 45 5 123456 77 88 99 1234\n", file);
  rewind(file);
  dup2(fileno(file), 0);
#ifdef FIXED
  std::ios_base::sync_with_stdio(false);
  std::cin.tie(nullptr);
#endif
  long long total = 0;
  for (int turn = 0; turn < 10 * size; ++turn) {
    lseek(0, 0, SEEK_SET);
    std::cin.clear();
#ifndef FIXED
    clearerr(stdin);
#endif
    int x;
    while (std::cin >> x) total += x;
  }
  std::cout << total << "\n";
}
