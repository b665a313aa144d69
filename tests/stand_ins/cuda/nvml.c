/* Stands in for libnvidia-ml.so.1 in tests: $STAND_IN_GPUS devices, by default one H200; $STAND_IN_MIG of them cut in two;
   $STAND_IN_NVML is what nvmlInit answers, $STAND_IN_LOST what asking for a device does, $STAND_IN_THROTTLE a file with
   the reasons that hold. $STAND_IN_SLEEP seconds pass in nvmlInit. $STAND_IN_WATTS and $STAND_IN_LOCK: what it is set to. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int R;
typedef struct { int device, instance; } H; /* handles: device + 1, or 100 * (device + 1) + instance + 1 */
static int number(const char *name, int otherwise) { const char *t = getenv(name); return t && *t ? atoi(t) : otherwise; }
static int is_mig(intptr_t h) { return h >= 100; }
static int device(intptr_t h) { return (is_mig(h) ? h / 100 : h) - 1; }

R nvmlInit_v2(void) { sleep(number("STAND_IN_SLEEP", 0)); return number("STAND_IN_NVML", 0); }
R nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(R e) { return e == 18 ? "Driver/library version mismatch" : "an error"; }
R nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "580.159.04"); return 0; }
R nvmlDeviceGetCount_v2(unsigned *n) { *n = number("STAND_IN_GPUS", 1); return 0; }
R nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(intptr_t)(i + 1); return number("STAND_IN_LOST", 0); }
R nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **h) { *h = (void *)1; return strcmp(bus, "0000:00:06.0") ? 6 : 0; }
R nvmlDeviceGetName(void *h, char *s, unsigned n) {
  const char *names[] = {"NVIDIA H200", "NVIDIA T4"};
  int old = number("STAND_IN_MIXED", 0) && device((intptr_t)h) == 0;
  snprintf(s, n, is_mig((intptr_t)h) ? "%s MIG 1g.18gb" : "%s", names[old]); return 0; }
R nvmlDeviceGetUUID(void *h, char *s, unsigned n) {
  intptr_t v = (intptr_t)h; snprintf(s, n, is_mig(v) ? "MIG-%08d-aaaa" : "GPU-%08d-bbbb", (int)v); return 0; }
R nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) {
  int old = number("STAND_IN_MIXED", 0) && device((intptr_t)h) == 0; *a = old ? 7 : 9; *b = old ? 5 : 0; return 0; }
R nvmlDeviceGetNumGpuCores(void *h, unsigned *n) { *n = number("STAND_IN_MIXED", 0) && device((intptr_t)h) == 0 ? 2560 : 16896; return 0; }
R nvmlDeviceGetMemoryBusWidth(void *h, unsigned *n) { *n = 6016; return number("STAND_IN_OLD", 0) ? 3 : 0; }
R nvmlDeviceGetMaxClockInfo(void *h, unsigned kind, unsigned *mhz) { *mhz = kind == 2 ? 3201 : 1980; return 0; }
R nvmlDeviceGetClockInfo(void *h, unsigned kind, unsigned *mhz) { *mhz = 1755; return 0; }
R nvmlDeviceGetApplicationsClock(void *h, unsigned kind, unsigned *mhz) { *mhz = number("STAND_IN_LOCK", 1980); return 0; }
R nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *mw) { *mw = 1000 * number("STAND_IN_WATTS", 700); return 0; }
R nvmlDeviceGetPowerUsage(void *h, unsigned *mw) { *mw = 123456; return 0; }
R nvmlDeviceGetTemperature(void *h, unsigned sensor, unsigned *degrees) { *degrees = 40 + device((intptr_t)h); return 0; }
R nvmlDeviceGetCurrentClocksEventReasons(void *h, unsigned long long *bits) {
  *bits = 0; const char *path = getenv("STAND_IN_THROTTLE"); FILE *f = path ? fopen(path, "r") : 0;
  if (f) { if (fscanf(f, "%llu", bits) != 1) *bits = 0; fclose(f); } return 0; }
R nvmlDeviceGetMemoryInfo(void *h, unsigned long long *m) { m[0] = is_mig((intptr_t)h) ? 18ULL << 30 : 150754820096ULL; m[1] = m[2] = 0; return 0; }
R nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *next) { *now = *next = device((intptr_t)h) < number("STAND_IN_MIG", 0); return 0; }
R nvmlDeviceGetMaxMigDeviceCount(void *h, unsigned *n) { *n = 7; return 0; }
R nvmlDeviceGetMigDeviceHandleByIndex(void *h, unsigned i, void **m) { if (i > 1) return 6; *m = (void *)((intptr_t)h * 100 + i + 1); return 0; }
R nvmlDeviceGetAttributes_v2(void *h, void *a) { memset(a, 0, 40); *(unsigned *)a = 16; return is_mig((intptr_t)h) ? 0 : 2; }
R nvmlDeviceGetVirtualizationMode(void *h, unsigned *mode) { *mode = number("STAND_IN_VIRTUAL", 1); return 0; }
