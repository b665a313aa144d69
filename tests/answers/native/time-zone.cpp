// Counts events by their local hour.
#include <cstdio>
#include <cstdlib>
#include <ctime>

static int hour_of(std::time_t at) {
    std::tm local;
    localtime_r(&at, &local);
    return local.tm_hour;
}

int main(int, char** words) {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    const std::time_t end = 1'700'000'000 + std::time_t(250'000'000 * std::atof(words[1]));
    long hours[24] = {};
    [[maybe_unused]] std::time_t known = -1;
    [[maybe_unused]] int hour = 0;
    for (std::time_t at = 1'700'000'000; at < end; at += 7) {
#ifdef FIXED
        if (at / 3600 != known) {
            known = at / 3600;
            hour = hour_of(at);
        }
        hours[hour]++;
#else
        hours[hour_of(at)]++;
#endif
    }
    std::printf("%ld %ld\n", hours[3], hours[17]);
}
