// A user is searched by number in a vector for each payment.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

struct User {
  int id;
  std::string name;
  double balance;
};

int main(int, char **argv) {
  const int payments = int(700000 * std::atof(argv[1]));
  std::vector<User> users;
  for (int i = 0; i < 5000; ++i) users.push_back({i * 7919 % 100003, "user" + std::to_string(i), 0});
#ifdef FIXED
  std::unordered_map<int, size_t> place;
  for (size_t i = 0; i < users.size(); ++i) place[users[i].id] = i;
#endif
  for (int payment = 0; payment < payments; ++payment) {
    const int id = int(payment * 7L % 5000) * 7919 % 100003;
#ifdef FIXED
    auto found = users.begin() + place.at(id);
#else
    auto found = std::find_if(users.begin(), users.end(), [id](const User &user) { return user.id == id; });
#endif
    found->balance += 1;
  }
  double sum = 0;
  for (const auto &user : users) sum += user.balance * user.id;
  std::printf("%f\n", sum);
}
