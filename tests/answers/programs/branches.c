#include <stdio.h>
#include <stdlib.h>
long count_large(const int *values, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        if (values[i] > 16384)          /* answer */
            sum += values[i] * 3 ^ sum; /* answer */
        else
            sum -= i;                   /* answer */
    return sum;
}
int main(void) {
    long n = 4000000, sum = 0;
    int *values = malloc(n * sizeof *values);
    srand(3);
    for (long i = 0; i < n; i++) values[i] = rand() & 32767;
    for (int k = 0; k < 25; k++) sum ^= count_large(values + k, n - 25);
    printf("%ld\n", sum);
    return 0;
}
