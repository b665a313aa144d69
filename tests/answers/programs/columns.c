#include <stdio.h>
#include <stdlib.h>
#define N 4096
double sum_columns(const double *m) {
    double sum = 0;
    for (int c = 0; c < N; c++)
        for (int r = 0; r < N; r++)
            sum += m[(long)r * N + c]; /* answer */
    return sum;
}
int main(void) {
    double *m = malloc(sizeof(double) * N * N), sum = 0;
    for (long i = 0; i < (long)N * N; i++) m[i] = i % 10;
    for (int k = 0; k < 6; k++) m[k] = k, sum += sum_columns(m);
    printf("%g\n", sum);
    return 0;
}
