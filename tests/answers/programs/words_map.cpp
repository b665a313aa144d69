#include <cstdio>
#include <map>
#include <string>
#include <vector>
static void count(std::map<std::string, int> &counts, const std::vector<std::string> &words) {
    for (const auto &word : words) counts[word]++; // answer
}
int main() {
    std::vector<std::string> words;
    for (long i = 0; i < 400000; i++) words.push_back("customer/account/" + std::to_string(i * 7919 % 50000));
    std::map<std::string, int> counts;
    for (int k = 0; k < 5; k++) count(counts, words);
    std::printf("%zu\n", counts.size());
}
