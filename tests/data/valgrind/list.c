#include "step.h"
enum { N = 1 << 14 };
struct node nodes[N];
__attribute__((noinline)) long walk(long steps) {
    long total = 0;
    struct node *n = nodes;
    for (long i = 0; i < steps; i++) {
        total += value_of(n);
        n = n->next;
    }
    return total;
}
int main(void) {
    for (long i = 0; i < N; i++) nodes[i * 7919 % N].next = &nodes[(i + 1) * 7919 % N], nodes[i].value = i % 5;
    return walk(4 * N) == 0;
}
