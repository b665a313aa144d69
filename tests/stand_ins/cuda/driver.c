/* Stands in for libcuda.so.1 in tests: one device, and a simulated clock that host and device share. Work takes as long
   as it is said to; events happen when the device comes to them; who waits moves the clock, and nothing else that runs
   on this machine does. What is called is written to $STAND_IN_LOG, one name a line. Modelled after what an H200's driver (580) was seen to do; it is no proof of what a real one does. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int R;
static int initialised, made, kept, depth, started;
static pid_t owner;
static __thread void *stack[16];
static __thread int top;
static int64_t free_at, other_free_at; /* ns: when the stream, and another one, will be idle */

/* ns. Each reading costs the host READING, each launch LAUNCH, to be told of the end of a wait WAKE_UP. */
#define READING 50
#define LAUNCH 1000
#define WAKE_UP 2000
static int64_t clock_ns = 1000000000;
static int64_t pass(int64_t ns) { return __atomic_add_fetch(&clock_ns, ns, __ATOMIC_RELAXED); }
static int64_t now(void) { return pass(READING); }
static void wait_until(int64_t when) { int64_t left = when - now(); pass((left > 0 ? left : 0) + WAKE_UP); }
static void say(const char *name) {
  const char *path = getenv("STAND_IN_LOG");
  if (!path) return;
  FILE *f = fopen(path, "a"); if (f) { fprintf(f, "%s\n", name); fclose(f); }
}
static int number(const char *name, int otherwise) { const char *t = getenv(name); return t ? atoi(t) : otherwise; }
static R ready(void) { return initialised && owner == getpid() ? 0 : 3; }
/* A thousand launches may wait; one more waits for the first of them to be over, as the host does on an H200. */
#define QUEUE 1000
static int64_t over[QUEUE];
static unsigned launched;
static void queue(void) { int64_t *slot = &over[launched++ % QUEUE]; if (now() < *slot) wait_until(*slot); *slot = free_at; }
static void busy(int64_t ns) { int64_t n = pass(LAUNCH); free_at = (free_at > n ? free_at : n) + ns; queue(); }

R cuInit(unsigned f) { say("cuInit"); int e = number("STAND_IN_INIT", 0); if (e) return e;
  if (owner && owner != getpid()) return 3; initialised = 1; owner = getpid(); return 0; }
R cuGetErrorName(R e, const char **s) { *s = e == 3 ? "CUDA_ERROR_NOT_INITIALIZED" : e == 100 ? "CUDA_ERROR_NO_DEVICE" :
  e == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : 0; return *s ? 0 : 1; }
R cuCtxGetCurrent(void **c) { if (ready()) return 3; *c = top ? stack[top - 1] : 0; return 0; }
R cuCtxSetCurrent(void *c) { say("cuCtxSetCurrent"); top = 1; stack[0] = c; return 0; }
R cuCtxPushCurrent_v2(void *c) { stack[top++] = c; return 0; }
R cuCtxPopCurrent_v2(void **c) { *c = stack[--top]; return 0; }
R cuCtxGetDevice(int *d) { *d = 0; return top ? 0 : 201; }
R cuDeviceGetCount(int *n) { if (ready()) return 3; *n = 1; return 0; }
R cuDeviceGet(int *d, int i) { *d = i; return 0; }
R cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 38 ? 1 << 20 : 0; return 0; }
R cuDeviceGetPCIBusId(char *s, int n, int d) { snprintf(s, n, "0000:00:06.0"); return 0; }
R cuDevicePrimaryCtxGetState(int d, unsigned *f, int *a) { *a = made; return 0; }
R cuDevicePrimaryCtxRetain(void **c, int d) { say("cuDevicePrimaryCtxRetain"); *c = &made; made = 1; kept++; return 0; }
R cuDevicePrimaryCtxRelease_v2(int d) { if (--kept == 0) made = 0; return 0; }
R cuCtxSynchronize(void) {
  say("cuCtxSynchronize"); int e = number("STAND_IN_SYNC", 0); if (e) return e;
  wait_until(free_at > other_free_at ? free_at : other_free_at); return 0; }
R cuProfilerStart(void) { if (!top) return 201; say("cuProfilerStart"); started = 1; return number("STAND_IN_START", 0); }
R cuProfilerStop(void) { say("cuProfilerStop"); started = 0; return 0; }
R cuEventCreate(int64_t **e, unsigned f) { *e = calloc(1, sizeof **e); return 0; }
R cuEventDestroy_v2(int64_t *e) { free(e); return 0; }
R cuEventRecord(int64_t *e, void *s) { int64_t n = now(); *e = free_at > n ? free_at : n; queue(); return 0; }
R cuEventQuery(int64_t *e) { return now() >= *e ? 0 : 600; }
R cuEventSynchronize(int64_t *e) { wait_until(*e); return 0; }
R cuEventElapsedTime(float *ms, int64_t *a, int64_t *b) { *ms = (*b - *a) / 1e6f * (number("STAND_IN_FAST_CLOCK", 100) / 100.0f); return 0; }
R cuMemAlloc_v2(uint64_t *p, size_t n) { say("cuMemAlloc_v2"); if (n > (size_t)number("STAND_IN_MEMORY_MB", 4096) << 20) return 2; *p = 1; return 0; }
R cuMemFree_v2(uint64_t p) { say("cuMemFree_v2"); return 0; }
R cuMemsetD8Async(uint64_t p, unsigned char c, size_t n, void *s) { say("cuMemsetD8Async"); busy(60000); return 0; }
R cuLaunchHostFunc(void *s, void *f, void *data) { if (number("STAND_IN_NO_HOLD", 0)) return 801; say("hold"); busy((intptr_t)data * 1000); return 0; }

/* The clock as the host reads it, and work that keeps the host busy. */
int64_t stand_in_now(void) { return now(); }
void stand_in_spin(int64_t ns) { pass(ns); }

/* What a workload does to the device: so many microseconds on the stream, or on another one. */
R stand_in_work(int us) { busy(us * 1000LL); return 0; }
R stand_in_elsewhere(int us) { int64_t n = pass(LAUNCH); other_free_at = (other_free_at > n ? other_free_at : n) + us * 1000LL; return 0; }
