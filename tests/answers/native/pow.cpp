// Adds up the squares of distances.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static double moment(const std::vector<float>& xs) {
    double sum = 0;
    for (float x : xs) {
#ifdef FIXED
        sum += x * x * x;
#else
        sum += std::pow(x, 3.0f);
#endif
    }
    return sum;
}

int main(int, char** words) {
    const int rounds = int(2'800 * std::atof(words[1]));
    std::vector<float> xs(100'000);
    for (std::size_t n = 0; n < xs.size(); n++) xs[n] = 1 + 1e-6f * float(n);
    double sum = 0;
    for (int n = 0; n < rounds; n++) sum += moment(xs);
    std::printf("%.0f\n", sum / 1e4);
}
