// Asks for each item whether one of a few files is there; mended, each item has a file of its own.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/stat.h>

int main(int, char **argv) {
  const int count = std::atoi(argv[1]);
  long there = 0;
  for (int i = 0; i < count; ++i) {
#ifdef FIXED
    const int file = i;
#else
    const int file = i % 7;
#endif
    struct stat found;
    there += stat(("/proc/self/fd/" + std::to_string(file)).c_str(), &found) == 0;
  }
  std::printf("%ld\n", there);
}
