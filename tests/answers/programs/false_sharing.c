// Four threads count into neighbouring numbers of one array.
#include <pthread.h>
#include <stdio.h>
static volatile long counts[4];

static void* count(void* at) {  // also
    volatile long* mine = at;
    for (long i = 0; i < 200000000; i++) *mine += i & 1;  // answer
    return 0;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, count, (void*)&counts[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("%ld\n", counts[0] + counts[3]);
}
