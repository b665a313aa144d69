// Writes what a level lets through.
#include <cstdio>
#include <cstdlib>
#include <cstring>

static bool is_on() {
    const char* level = std::getenv("SERVICE_LOG_LEVEL");
    return level != nullptr && std::strcmp(level, "debug") == 0;
}

static long work(int count) {
    long sum = 0;
#ifdef FIXED
    static const bool on = is_on();
#endif
    for (int n = 0; n < count; n++) {
        sum += n * 7 % 13;
#ifdef FIXED
        if (on) std::printf("%ld\n", sum);
#else
        if (is_on()) std::printf("%ld\n", sum);
#endif
    }
    return sum;
}

int main(int, char** words) {
    for (int n = 0; n < 40; n++) {
        char name[32];
        std::snprintf(name, sizeof name, "SERVICE_OPTION_%d", n);
        setenv(name, "value", 1);
    }
    std::printf("%ld\n", work(int(5'000'000 * std::atof(words[1]))));
}
