#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static void *add(void *unused) {
    for (long i = 0; i < 8000000; i++) {
        pthread_mutex_lock(&lock);   /* answer */
        total += i & 3;              /* answer */
        pthread_mutex_unlock(&lock); /* answer */
    }
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int t = 0; t < 4; t++) pthread_create(&threads[t], NULL, add, NULL);
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
    printf("%ld\n", total);
    return 0;
}
