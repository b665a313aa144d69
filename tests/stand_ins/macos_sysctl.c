/* sysctlbyname as macOS's C library has it, with three names: to be preloaded where there is no Mac. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

static int give(void *to, size_t *length, const void *from, size_t size) {
    if (to != NULL) {
        if (*length < size) {
            errno = ENOMEM;
            return -1;
        }
        memcpy(to, from, size);
    }
    *length = size;
    return 0;
}

int sysctlbyname(const char *name, void *old, size_t *oldlen, const void *new, size_t newlen) {
    static const char brand[] = "Apple M3 Max";
    static const unsigned long long memory = 64ULL << 30;
    static const int guest = 1;
    (void)new;
    (void)newlen;
    if (strcmp(name, "machdep.cpu.brand_string") == 0) return give(old, oldlen, brand, sizeof brand);
    if (strcmp(name, "hw.memsize") == 0) return give(old, oldlen, &memory, sizeof memory);
    if (strcmp(name, "kern.hv_vmm_present") == 0) return give(old, oldlen, &guest, sizeof guest);
    errno = ENOENT;
    return -1;
}
