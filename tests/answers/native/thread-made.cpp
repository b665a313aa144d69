// Adds up series, each in a thread.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

static double series(int k) {
    double sum = 0;
    for (int i = 1; i < 300; i++) sum += 1.0 / (i + k);
    return sum;
}

int main(int, char** words) {
    const int count = int(80'000 * std::atof(words[1]));
    std::vector<double> sums(count);
#ifdef FIXED
    auto part = [&](int from, int to) { for (int i = from; i < to; i++) sums[i] = series(i); };
    std::thread other(part, 0, count / 2);
    part(count / 2, count);
    other.join();
#else
    std::vector<std::thread> running;
    for (int i = 0; i < count; i++) {
        running.emplace_back([&, i] { sums[i] = series(i); });
        if (running.size() < 64 && i + 1 < count) continue;
        for (auto& one : running) one.join();
        running.clear();
    }
#endif
    double sum = 0;
    for (double one : sums) sum += one;
    std::printf("%.6f\n", sum);
}
