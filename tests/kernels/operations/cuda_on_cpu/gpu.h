// Enough of CUDA for the kernels to run on a CPU: a block's threads are fibers that take turns, and wait for each other at
// barriers and shuffles. One block after the other. A thread that ends while others of its warp wait is an error.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <setjmp.h>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static  // blocks do not run at the same time
#define __align__(n) alignas(n)

struct Place {
    unsigned x;
};
inline Place threadIdx, blockIdx, blockDim, gridDim;

namespace gpu {
struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(64 << 10);
    jmp_buf rests_at;
    bool begun = false, over = false;
};
struct Barrier {
    unsigned waiting = 0, round = 0;
};
inline std::vector<Fiber> fibers;
inline std::vector<Barrier> warps;
inline Barrier block;
inline std::vector<float> slots;
inline jmp_buf home;
inline unsigned current, alive, moves;
inline void (*body)(const void*);  // what each thread runs, and what it is given
inline const void* given;

// A fiber begins by its context; then jumps, which call no system, go between the fibers: tens of times as fast.
inline void rest() {
    if (_setjmp(fibers[current].rests_at) == 0) _longjmp(home, 1);
}
inline void turn(Fiber& fiber) {
    if (_setjmp(home) != 0) return;
    if (fiber.begun) _longjmp(fiber.rests_at, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}
inline void meet(Barrier& barrier, unsigned members) {
    ++moves;
    const unsigned round = barrier.round;
    if (++barrier.waiting == members) {
        barrier.waiting = 0;
        ++barrier.round;
        return;
    }
    while (barrier.round == round) rest();
    ++moves;
}
inline void start() {
    body(given);
    fibers[current].over = true;
    --alive;
    ++moves;
    rest();
}
inline void run(unsigned blocks, unsigned threads, void (*kernel)(const void*), const void* arguments) {
    body = kernel;
    given = arguments;
    gridDim.x = blocks;
    blockDim.x = threads;
    fibers.resize(threads);
    slots.resize(threads);
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        warps.assign(threads / 32, {});
        block = {};
        alive = threads;
        for (auto& fiber : fibers) {
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = fiber.stack.size();
            fiber.context.uc_link = nullptr;
            fiber.begun = fiber.over = false;
            makecontext(&fiber.context, start, 0);
        }
        while (alive) {
            const unsigned before = moves;
            for (current = 0; current < threads; ++current)
                if (!fibers[current].over) {
                    threadIdx.x = current;
                    turn(fibers[current]);
                }
            if (moves == before) {
                std::fprintf(stderr, "block %u: %u threads wait for some that have ended\n", blockIdx.x, alive);
                std::abort();
            }
        }
    }
}
}  // namespace gpu

inline void __syncthreads() {
    gpu::meet(gpu::block, blockDim.x);
}
inline float __shfl_xor_sync(unsigned, float value, int step) {
    const unsigned own = threadIdx.x;
    gpu::slots[own] = value;
    gpu::meet(gpu::warps[own / 32], 32);
    const float found = gpu::slots[own ^ unsigned(step)];
    gpu::meet(gpu::warps[own / 32], 32);
    return found;
}
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* at, unsigned by) { return std::exchange(*at, *at + by); }
inline float __ldcg(const float* at) { return *at; }
template <typename To, typename From> inline To same_bits(From from) {
    To to;
    static_assert(sizeof to == sizeof from);
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline float __int_as_float(int bits) { return same_bits<float>(bits); }
inline float __uint_as_float(unsigned bits) { return same_bits<float>(bits); }
inline unsigned __float_as_uint(float value) { return same_bits<unsigned>(value); }
inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

inline float exp2_of(float value) { return std::exp2(value); }
inline float log2_of(float value) { return std::log2(value); }
inline float inverse(float value) { return 1.0f / value; }
inline float from_half(unsigned short bits) { return float(same_bits<_Float16>(bits)); }
inline unsigned short to_half(float value) { return same_bits<unsigned short>(_Float16(value)); }
inline unsigned short to_bfloat(float value) {
    const unsigned bits = same_bits<unsigned>(value);
    if (value != value) return 0x7fff;
    return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A kernel's arguments as the driver takes them: an array of their addresses.
template <typename... A, std::size_t... I>
void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void** at, std::index_sequence<I...>) {
    auto call = [=] { kernel(*static_cast<std::remove_const_t<A>*>(at[I])...); };
    gpu::run(blocks, threads, [](const void* given) { (*static_cast<const decltype(call)*>(given))(); }, &call);
}
template <typename... A> void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void** at) {
    launch(kernel, blocks, threads, at, std::index_sequence_for<A...>{});
}
