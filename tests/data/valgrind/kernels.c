#include <stdlib.h>
#include <valgrind/callgrind.h>
enum { N = 1 << 17 };
double a[N], b[N], c[N];
__attribute__((noinline)) void add(void) { for (int i = 0; i < N; i++) c[i] = a[i] + b[i]; }
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int even(int n);
__attribute__((noinline)) int odd(int n) { return n == 0 ? 0 : even(n - 1) + 1; }
__attribute__((noinline)) int even(int n) { return n == 0 ? 1 : odd(n - 1) + 1; }
int main(void) {
    volatile int sink;
    CALLGRIND_START_INSTRUMENTATION;
    add();
    CALLGRIND_TOGGLE_COLLECT; CALLGRIND_ZERO_STATS; CALLGRIND_TOGGLE_COLLECT;
    add(); add();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT("add [entries 2]");
    CALLGRIND_TOGGLE_COLLECT;
    sink = fib(12) + even(9);
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT("calls [entries 1, cold]");
    return sink + (int) c[sink] == 0;
}
