// Makes a page of rows.
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Page {
    char* data;
    std::size_t length;
};

static void add(Page& page, const char* row) {
#ifdef FIXED
    const std::size_t size = std::strlen(row);
    std::memcpy(page.data + page.length, row, size + 1);
    page.length += size;
#else
    std::strcat(page.data, row);
#endif
}

int main(int, char** words) {
    const int count = int(60'000 * std::atof(words[1]));
    Page page{static_cast<char*>(std::calloc(std::size_t(count) + 1, 32)), 0};
    for (int n = 0; n < count; n++) {
        char row[32];
        std::snprintf(row, sizeof row, "<tr><td>%d</td></tr>\n", n);
        add(page, row);
    }
    std::printf("%zu\n", std::strlen(page.data));
}
