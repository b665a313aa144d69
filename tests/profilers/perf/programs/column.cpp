// Adds up each column of a table of 16 numbers in a row: a large, equal step, too, but all of each row is used.
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 60, rows = 400000;
    std::vector<double> table(16 * rows, 0.5);
    double most = 0;
    for (int round = 0; round < rounds; round++)
        for (int column = 0; column < 16; column++) {
            double sum = 0;
            for (int row = 0; row < rows; row++) sum += table[16 * row + column];
            if (sum > most) most = sum + round;
        }
    printf("%.1f\n", most);
}
