// A loop copies each customer, of which it needs a number.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct Customer {
  std::string name, city;
  std::vector<int> orders;
  int group;
};

int main(int, char **argv) {
  const int rounds = int(700 * std::atof(argv[1]));
  std::vector<Customer> customers;
  for (int i = 0; i < 20000; ++i) {
    customers.push_back({"a customer with a long name " + std::to_string(i), "a city far away", {i, i + 1}, i % 77});
  }
  long sum = 0;
  for (int round = 0; round < rounds; ++round) {
#ifdef FIXED
    for (const auto &customer : customers) {
#else
    for (auto customer : customers) {
#endif
      if (customer.group == round % 77) sum += customer.orders[0];
    }
  }
  std::printf("%ld\n", sum);
}
