#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
int main(int argc, char **argv) {
  double size = std::atof(argv[1]);
  std::string text(900000 * size, 'a');
  for (size_t i = 0; i < text.size(); i += 5) text[i] = ',';
  long total = 0;
#ifdef FIXED
  std::string_view rest = text;
#else
  std::string rest = text;
#endif
  for (size_t at; (at = rest.find(',')) != rest.npos;) {
    total += at;
    rest = rest.substr(at + 1);
  }
  printf("%ld\n", total);
}
