// Elements of an array as float32, 16 bytes at a time. ELEMENT is chosen when this is compiled: 0 float, 1 half,
// 2 bfloat16. No header is needed, so none has to be installed. What C++ has no word for are single instructions;
// a test compiles these files for the CPU, where the header that it names does the same in C++.
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

#ifdef ON_CPU
#include ON_CPU
#else
// 2^value, the logarithm to 2, and 1 / value: one instruction each, right to 2 ulp. What is subnormal is 0.
__device__ __forceinline__ float exp2_of(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}
__device__ __forceinline__ float log2_of(float value) {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}
__device__ __forceinline__ float inverse(float value) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}
__device__ __forceinline__ float from_half(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ __forceinline__ u16 to_half(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
__device__ __forceinline__ u16 to_bfloat(float value) {
#if __CUDA_ARCH__ >= 800
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else  // to nearest, ties to even; what is no number stays none
    const u32 bits = __float_as_uint(value);
    return value != value ? u16(0x7fff) : u16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}
#endif

#define LOG2_E 1.4426950408889634f
#define LN_2 0.69314718055994531f
#define NOTHING __int_as_float(int(0xff800000u))  // minus infinity
#define NO_NUMBER __int_as_float(0x7fffffff)

#if ELEMENT == 0
typedef float element;
#define WIDE 4  // elements in 16 bytes
#else
typedef u16 element;
#define WIDE 8
#endif

__device__ __forceinline__ float to_float(element bits) {
#if ELEMENT == 0
    return bits;
#elif ELEMENT == 1
    return from_half(bits);
#else
    return __uint_as_float(u32(bits) << 16);
#endif
}

__device__ __forceinline__ element to_element(float value) {
#if ELEMENT == 0
    return value;
#elif ELEMENT == 1
    return to_half(value);
#else
    return to_bfloat(value);
#endif
}

// COUNT elements that are loaded and stored together: up to 16 bytes, as many as the begin of every row allows.
template <int COUNT> struct __align__(COUNT * sizeof(element)) Pack { element v[COUNT]; };

template <int COUNT> __device__ __forceinline__ void widen(const Pack<COUNT>& pack, float* into) {
#if ELEMENT == 2
    if constexpr (COUNT > 1) {  // a bfloat16 is the upper half of a float32: one instruction for each of a word's two
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) {
            const u32 both = reinterpret_cast<const u32*>(&pack)[i / 2];
            into[i] = __uint_as_float(both << 16);
            into[i + 1] = __uint_as_float(both & 0xffff0000u);
        }
    } else
#endif
#pragma unroll
        for (int i = 0; i < COUNT; ++i) into[i] = to_float(pack.v[i]);
}

template <int COUNT> __device__ __forceinline__ void load(const element* from, float* into) {
    const Pack<COUNT> pack = *reinterpret_cast<const Pack<COUNT>*>(from);  // all of it at once
    widen(pack, into);
}

template <int COUNT> __device__ __forceinline__ void store(element* into, const float* from) {
    Pack<COUNT> pack;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) pack.v[i] = to_element(from[i]);
    *reinterpret_cast<Pack<COUNT>*>(into) = pack;
}

// The sum over neighbouring OVER threads of a warp, in each of them.
template <int OVER> __device__ __forceinline__ float lanes_sum(float value) {
#pragma unroll
    for (int step = OVER / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <int OVER> __device__ __forceinline__ float lanes_most(float value) {
#pragma unroll
    for (int step = OVER / 2; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// The sum over the block, in all of its threads. `shared` holds 32 floats, and may be used again at once.
__device__ __forceinline__ float block_sum(float value, float* shared) {
    value = lanes_sum<32>(value);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : 0.0f;
    __syncthreads();
    return lanes_sum<32>(value);
}

__device__ __forceinline__ float block_most(float value, float* shared) {
    value = lanes_most<32>(value);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? shared[threadIdx.x % 32] : NOTHING;
    __syncthreads();
    return lanes_most<32>(value);
}

// Adds up what every block found, in the same order at every call, in the block that is done last. `done` is left at 0.
__device__ __forceinline__ void finish(float own, float* partial, u32* done, element* out, float scale, float* shared) {
    __shared__ bool last;
    const float whole = block_sum(own, shared);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = whole;
        __threadfence();
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    float total = 0.0f;
    for (u32 i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += __ldcg(partial + i);
    total = block_sum(total, shared);
    if (threadIdx.x == 0) {
        *out = to_element(total * scale);
        *done = 0;
    }
}

// exp(value - top), for value <= top. The difference comes first: it is exact where it matters.
__device__ __forceinline__ float raised(float value, float top) { return exp2_of((value - top) * LOG2_E); }
