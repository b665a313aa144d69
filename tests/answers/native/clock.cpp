// Follows a value step by step, and how long that takes.
#include <chrono>
#include <cstdio>
#include <cstdlib>

using Clock = std::chrono::steady_clock;

int main(int, char** words) {
    const int count = int(15'000'000 * std::atof(words[1]));
    double x = 0, busy = 0;
#ifdef FIXED
    const auto begun = Clock::now();
#endif
    for (int n = 0; n < count; n++) {
#ifndef FIXED
        const auto begun = Clock::now();
#endif
        x = x * 0.999 + 0.1;
#ifndef FIXED
        busy += std::chrono::duration<double>(Clock::now() - begun).count();
#endif
    }
#ifdef FIXED
    busy = std::chrono::duration<double>(Clock::now() - begun).count();
#endif
    std::printf("%.6f %d\n", x, busy > 0);
}
