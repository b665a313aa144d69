#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; char pad[48]; };
long walk(struct node *first) {
    long sum = 0;
    for (struct node *n = first; n; n = n->next) /* answer */
        sum += n->value;                         /* answer */
    return sum;
}
int main(void) {
    long count = 1000000;
    struct node *nodes = malloc(count * sizeof *nodes);
    long *order = malloc(count * sizeof *order);
    for (long i = 0; i < count; i++) order[i] = i;
    srand(7);
    for (long i = count - 1; i > 0; i--) {
        long j = rand() % (i + 1), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    for (long i = 0; i < count; i++) {
        nodes[order[i]].value = i;
        nodes[order[i]].next = i + 1 < count ? &nodes[order[i + 1]] : NULL;
    }
    long sum = 0;
    for (int k = 0; k < 20; k++) nodes[k].value = k, sum += walk(&nodes[order[0]]);
    printf("%ld\n", sum);
    return 0;
}
