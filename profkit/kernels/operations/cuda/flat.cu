// GELU, Swish and the mean squared error: the arrays are flat. A thread takes STEPS packs of PACK elements, and asks for
// all of them before it uses the first. TAIL: whether elements are left over after the last pack. The code is kept
// short: with cold caches a small array waits for the instructions, too.
#include "values.cuh"

// STEPS packs from each of the arrays, beginning with pack `at`; what lies behind the last pack is left as it is.
template <int ARRAYS>
__device__ __forceinline__ void gather(
    const element* const (&from)[ARRAYS], u64 at, u64 packs, float (&value)[STEPS][ARRAYS][PACK]
) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s)
        if (at + s * blockDim.x < packs)
#pragma unroll
            for (int a = 0; a < ARRAYS; ++a) load<PACK>(from[a] + (at + s * blockDim.x) * PACK, value[s][a]);
}

// y = f(arrays), element by element. The grid covers the array.
template <int ARRAYS, typename F>
__device__ __forceinline__ void map(const element* const (&from)[ARRAYS], element* y, u64 n, F f) {
    const u64 packs = n / PACK, at = u64(blockIdx.x) * blockDim.x * STEPS + threadIdx.x;
    float value[STEPS][ARRAYS][PACK];
    gather(from, at, packs, value);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        if (at + s * blockDim.x >= packs) continue;
        float result[PACK];
#pragma unroll
        for (int i = 0; i < PACK; ++i) {
            if constexpr (ARRAYS == 1) result[i] = f(value[s][0][i]);
            else result[i] = f(value[s][0][i], value[s][1][i]);
        }
        store<PACK>(y + (at + s * blockDim.x) * PACK, result);
    }
#if TAIL
    const u64 rest = packs * PACK + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && rest < n) {
        if constexpr (ARRAYS == 1) y[rest] = to_element(f(to_float(from[0][rest])));
        else y[rest] = to_element(f(to_float(from[0][rest]), to_float(from[1][rest])));
    }
#endif
}

__device__ __forceinline__ float sigmoid(float value) { return inverse(1.0f + exp2_of(-LOG2_E * value)); }

// P(X > size) of a normal X, for size >= 0: 2 to a polynomial, the one with the least error times size (at least 0.3) on
// [0, 6], where it is right to 6e-8; it falls ever faster behind. No branches, and half the instructions of erff.
__device__ __forceinline__ float beyond(float size) {
    float power = -1.9919056e-06f;
    power = power * size + 2.9272091e-05f;
    power = power * size - 1.3808868e-04f;
    power = power * size - 2.5343554e-04f;
    power = power * size + 7.2163888e-03f;
    power = power * size - 5.2603050e-02f;
    power = power * size - 4.5917222e-01f;
    power = power * size - 1.1511097f;
    return exp2_of(power * size - 0.9999999f);
}

__device__ __forceinline__ float size_of(float value) { return fminf(fabsf(value), 16.0f); }  // beyond(16) is 0

extern "C" __global__ void gelu(const element* x, element* y, u64 n) {
    map<1>({x}, y, n, [](float v) {
        const float size = size_of(v);
        return 0.5f * (v + fabsf(v)) - size * beyond(size);
    });
}

extern "C" __global__ void gelu_backward(const element* dy, const element* x, element* dx, u64 n) {
    map<2>({dy, x}, dx, n, [](float g, float v) {
        const float size = size_of(v);
        const float away = size * (0.39894228f * exp2_of(-0.5f * LOG2_E * v * v)) - beyond(size);
        return g * (v > 0.0f ? 1.0f + away : -away);
    });
}

extern "C" __global__ void swish(const element* x, element* y, u64 n) {
    map<1>({x}, y, n, [](float v) { return v * sigmoid(v); });
}

extern "C" __global__ void swish_backward(const element* dy, const element* x, element* dx, u64 n) {
    map<2>({dy, x}, dx, n, [](float g, float v) {
        const float s = sigmoid(v);
        return g * s * (1.0f + v * (1.0f - s));
    });
}

// `share` is 1 / n: the host divides, once.
extern "C" __global__ void mse(
    const element* x, const element* target, float* partial, u32* done, element* out, u64 n, float share
) {
    __shared__ float shared[32];
    const u64 packs = n / PACK, stride = u64(gridDim.x) * blockDim.x * STEPS;
    float total = 0.0f;
    for (u64 at = u64(blockIdx.x) * blockDim.x * STEPS + threadIdx.x; at < packs; at += stride) {
        float value[STEPS][2][PACK];
        gather<2>({x, target}, at, packs, value);
#pragma unroll
        for (int s = 0; s < STEPS; ++s)
            if (at + s * blockDim.x < packs)
#pragma unroll
                for (int i = 0; i < PACK; ++i) {
                    const float away = value[s][0][i] - value[s][1][i];
                    total += away * away;
                }
    }
#if TAIL
    const u64 rest = packs * PACK + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && rest < n) {
        const float away = to_float(x[rest]) - to_float(target[rest]);
        total += away * away;
    }
#endif
    finish(total, partial, done, out, share, shared);
}

extern "C" __global__ void mse_backward(
    const element* x, const element* target, const element* dout, element* dx, u64 n, float share
) {
    const float scale = 2.0f * to_float(*dout) * share;
    map<2>({x, target}, dx, n, [scale](float a, float b) { return (a - b) * scale; });
}

// What layer norm's blocks left for weight and bias (`count` rows of 2 * width) added up, always in the same order. A
// block of 1,024 threads takes 8 columns, the 32 bytes that memory gives at a time: more of them would leave most of the
// device idle.
extern "C" __global__ void column_sums(const float* partial, element* dw, element* db, u64 width, u32 count) {
    __shared__ float sums[8][33];
    const u64 column = u64(blockIdx.x) * 8 + threadIdx.x % 8;
    float total = 0.0f;
    if (column < 2 * width)
#pragma unroll 4
        for (u32 row = threadIdx.x / 8; row < count; row += 128) total += partial[row * 2 * width + column];
    total += __shfl_xor_sync(0xffffffffu, total, 8);
    total += __shfl_xor_sync(0xffffffffu, total, 16);
    if (threadIdx.x % 32 < 8) sums[threadIdx.x % 8][threadIdx.x / 32] = total;
    __syncthreads();
    const u64 own = u64(blockIdx.x) * 8 + threadIdx.x / 32;
    if (threadIdx.x >= 8 * 32 || own >= 2 * width) return;
    total = lanes_sum<32>(sums[threadIdx.x / 32][threadIdx.x % 32]);
    if (threadIdx.x % 32 != 0) return;
    if (own < width) dw[own] = to_element(total);
    else db[own - width] = to_element(total);
}
