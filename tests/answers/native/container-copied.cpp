// Looks prices up in a table of articles.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#ifdef FIXED
static double price(const std::map<std::string, double>& prices, const std::string& article) {
#else
static double price(std::map<std::string, double> prices, const std::string& article) {
#endif
    auto found = prices.find(article);
    return found != prices.end() ? found->second : 0;
}

int main(int, char** words) {
    const int count = int(60'000 * std::atof(words[1]));
    std::map<std::string, double> prices;
    for (int n = 0; n < 1000; n++) prices["article " + std::to_string(n)] = n * 0.5;
    double sum = 0;
    for (int n = 0; n < count; n++) sum += price(prices, "article " + std::to_string(n % 1200));
    std::printf("%.1f\n", sum);
}
