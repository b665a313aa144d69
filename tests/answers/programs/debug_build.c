#include <stdio.h>
static long mix(long value, long seed) { return (value * 31 + seed) % 1000003; } /* also */
long run(long rounds) {
    long value = 1;
    for (long i = 0; i < rounds; i++)
        value = mix(value, i); /* answer */
    return value;
}
int main(void) {
    printf("%ld\n", run(120000000));
    return 0;
}
