// A catalogue is put in order by titles in lower case.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct Book {
  std::string title;
  int year;
};

static std::string key(const Book &book) {
  std::string text;
  for (char c : book.title) text.push_back(char(std::tolower(c)));
  return text + '/' + std::to_string(book.year);
}

int main(int, char **argv) {
  const int count = int(60000 * std::atof(argv[1]));
  std::vector<Book> books;
  unsigned state = 1;
  for (int n = 0; n < count; ++n) {
    state = state * 1664525u + 1013904223u;
    books.push_back({"The History of " + std::to_string(state % 999983) + " and More", 1900 + n % 100});
  }
#ifdef FIXED
  std::vector<std::pair<std::string, int>> order;
  for (int n = 0; n < count; ++n) order.emplace_back(key(books[n]), n);
  std::sort(order.begin(), order.end());
  std::printf("%s\n", books[order[count / 2].second].title.c_str());
#else
  std::sort(books.begin(), books.end(), [](const Book &a, const Book &b) { return key(a) < key(b); });
  std::printf("%s\n", books[count / 2].title.c_str());
#endif
}
