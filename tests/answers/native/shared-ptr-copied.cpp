// Prices orders in two threads, by rates that both share.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

struct Rates {
    double rate = 0.5;
    int fee = 3;
};

#ifdef FIXED
static double price(const std::shared_ptr<const Rates>& rates, double amount) {
#else
static double price(std::shared_ptr<const Rates> rates, double amount) {
#endif
    return amount * rates->rate + rates->fee;
}

static void work(const std::shared_ptr<const Rates>& rates, int count, double* out) {
    double sum = 0;
    for (int n = 0; n < count; n++) {
        sum += price(rates, n);
    }
    *out = sum;
}

int main(int, char** words) {
    const int count = int(30'000'000 * std::atof(words[1]));
    auto rates = std::make_shared<const Rates>();
    double first, second;
    std::thread one(work, std::cref(rates), count, &first), two(work, std::cref(rates), count, &second);
    one.join();
    two.join();
    std::printf("%.0f\n", first + second);
}
