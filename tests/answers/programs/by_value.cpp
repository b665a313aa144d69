#include <cstdio>
#include <vector>
static long look(std::vector<long> table, long at) { return table[at % table.size()]; }
int main() {
    std::vector<long> table(40000);
    for (size_t i = 0; i < table.size(); i++) table[i] = i * i;
    long sum = 0;
    for (long i = 0; i < 60000; i++) sum += look(table, i); // answer
    std::printf("%ld\n", sum);
}
