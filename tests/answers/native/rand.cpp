// Estimates pi by throwing points.
#include <cstdio>
#include <cstdlib>
#include <random>

int main(int, char** words) {
    const int count = int(40'000'000 * std::atof(words[1]));
    long inside = 0;
#ifdef FIXED
    std::minstd_rand source(7);
    const double most = double(std::minstd_rand::max());
    auto next = [&] { return double(source()) / most; };
#else
    auto next = [] { return double(std::rand()) / RAND_MAX; };
#endif
    for (int n = 0; n < count; n++) {
        const double x = next(), y = next();
        inside += x * x + y * y < 1;
    }
    std::printf("%.1f\n", 4.0 * double(inside) / count);
}
