#include <stdio.h>
#include <stdlib.h>
void saxpy(long n, double a, double *x, double *y) {
    for (long i = 0; i < n; i++)
        y[i] = a * x[i] + y[i]; /* answer */
}
int main(void) {
    long n = 8000000;
    double *x = malloc(n * 8), *y = malloc(n * 8);
    for (long i = 0; i < n; i++) x[i] = y[i] = i;
    for (int k = 0; k < 40; k++) saxpy(n, 0.5, x, y);
    printf("%g\n", y[7]);
    return 0;
}
