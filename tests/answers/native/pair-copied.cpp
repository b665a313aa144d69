// Adds up the last charges of all accounts.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

struct Account {
    std::string owner;
    std::vector<double> charges;
};

static double total(const std::map<std::string, Account>& accounts) {
    double sum = 0;
#ifdef FIXED
    for (const auto& entry : accounts) {
#else
    for (const std::pair<std::string, Account>& entry : accounts) {
#endif
        sum += entry.second.charges.back();
    }
    return sum;
}

int main(int, char** words) {
    const int rounds = int(6'000 * std::atof(words[1]));
    std::map<std::string, Account> accounts;
    for (int n = 0; n < 1000; n++) {
        accounts["account number " + std::to_string(n)] = {"owner of the account", std::vector<double>(20, 0.5)};
    }
    double sum = 0;
    for (int n = 0; n < rounds; n++) sum += total(accounts);
    std::printf("%.1f\n", sum);
}
