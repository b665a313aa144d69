// Layer norm and cross entropy over rows that no warp can hold: a block goes over a row several times. Between two times
// the row lies in the first or second cache, so that memory is read once.
#include "values.cuh"

#define PACKS_OF(p) for (u64 p = threadIdx.x; p < width / PACK; p += blockDim.x)

extern "C" __global__ void layer_norm(
    const element* x, const element* w, const element* b, element* y, float* means, float* rstds, u64 rows, u64 width,
    float eps
) {
    __shared__ float shared[32];
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const element* from = x + row * width;
        float value[PACK], weight[PACK], bias[PACK], sum = 0.0f, squares = 0.0f;
        PACKS_OF(p) {
            load<PACK>(from + p * PACK, value);
#pragma unroll
            for (int i = 0; i < PACK; ++i) sum += value[i];
        }
        const float mean = block_sum(sum, shared) / float(width);
        PACKS_OF(p) {
            load<PACK>(from + p * PACK, value);
#pragma unroll
            for (int i = 0; i < PACK; ++i) squares += (value[i] - mean) * (value[i] - mean);
        }
        const float rstd = rsqrtf(block_sum(squares, shared) / float(width) + eps);
        PACKS_OF(p) {
            load<PACK>(from + p * PACK, value);
            load<PACK>(w + p * PACK, weight);
            load<PACK>(b + p * PACK, bias);
#pragma unroll
            for (int i = 0; i < PACK; ++i) value[i] = (value[i] - mean) * rstd * weight[i] + bias[i];
            store<PACK>(y + row * width + p * PACK, value);
        }
        if (means != nullptr && threadIdx.x == 0) {
            means[row] = mean;
            rstds[row] = rstd;
        }
    }
}

extern "C" __global__ void layer_norm_backward(
    const element* dy, const element* x, const element* w, const float* means, const float* rstds, element* dx, u64 rows,
    u64 width
) {
    __shared__ float shared[32];
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const u64 first = row * width;
        const float mean = means[row], rstd = rstds[row];
        float value[PACK], grad[PACK], weight[PACK], along = 0.0f, level = 0.0f;
        PACKS_OF(p) {
            load<PACK>(x + first + p * PACK, value);
            load<PACK>(dy + first + p * PACK, grad);
            load<PACK>(w + p * PACK, weight);
#pragma unroll
            for (int i = 0; i < PACK; ++i) {
                along += grad[i] * weight[i] * ((value[i] - mean) * rstd);
                level += grad[i] * weight[i];
            }
        }
        along = block_sum(along, shared) / float(width);
        level = block_sum(level, shared) / float(width);
        PACKS_OF(p) {
            load<PACK>(x + first + p * PACK, value);
            load<PACK>(dy + first + p * PACK, grad);
            load<PACK>(w + p * PACK, weight);
#pragma unroll
            for (int i = 0; i < PACK; ++i)
                grad[i] = (grad[i] * weight[i] - level - (value[i] - mean) * rstd * along) * rstd;
            store<PACK>(dx + first + p * PACK, grad);
        }
    }
}

// The sums for weight and bias over `each` rows: a thread takes one pack of columns, `across` blocks all of them.
extern "C" __global__ void layer_norm_columns(
    const element* dy, const element* x, const float* means, const float* rstds, float* partial, u64 rows, u64 width,
    u64 each, u32 across
) {
    const u64 column = (u64(blockIdx.x % across) * blockDim.x + threadIdx.x) * PACK, part = blockIdx.x / across;
    if (column >= width) return;
    float dw[PACK], db[PACK];
#pragma unroll
    for (int i = 0; i < PACK; ++i) dw[i] = db[i] = 0.0f;
#pragma unroll 4
    for (u64 row = part * each; row < min(rows, (part + 1) * each); ++row) {
        float value[PACK], grad[PACK];
        load<PACK>(x + row * width + column, value);
        load<PACK>(dy + row * width + column, grad);
        const float mean = means[row], rstd = rstds[row];
#pragma unroll
        for (int i = 0; i < PACK; ++i) {
            dw[i] += grad[i] * ((value[i] - mean) * rstd);
            db[i] += grad[i];
        }
    }
#pragma unroll
    for (int i = 0; i < PACK; ++i) {
        partial[part * 2 * width + column + i] = dw[i];
        partial[part * 2 * width + width + column + i] = db[i];
    }
}

// The row's largest, in `top`, and its sum of exp(x - top).
__device__ __forceinline__ float raise(const element* from, u64 width, float& top, float* shared) {
    float value[PACK], most = NOTHING, sum = 0.0f;
    PACKS_OF(p) {
        load<PACK>(from + p * PACK, value);
#pragma unroll
        for (int i = 0; i < PACK; ++i) most = fmaxf(most, value[i]);
    }
    top = block_most(most, shared);
    PACKS_OF(p) {
        load<PACK>(from + p * PACK, value);
#pragma unroll
        for (int i = 0; i < PACK; ++i) sum += raised(value[i], top);
    }
    return block_sum(sum, shared);
}

// The logarithm of a row's sum of exp(x - top), less the target's x - top. A label that is no class gives NaN.
__device__ __forceinline__ float row_loss(const element* x, long long wanted, u64 width, float top, float sum) {
    if (u64(wanted) >= width) return NO_NUMBER;
    return log2_of(sum) * LN_2 + (top - to_float(x[wanted]));
}

extern "C" __global__ void cross_entropy(
    const element* x, const long long* target, float* partial, u32* done, element* out, u64 rows, u64 width, float part
) {
    __shared__ float shared[32];
    float losses = 0.0f;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        float top;
        const float sum = raise(x + row * width, width, top, shared);
        if (threadIdx.x == 0) losses += row_loss(x + row * width, target[row], width, top, sum);
    }
    finish(losses, partial, done, out, part, shared);
}

extern "C" __global__ void cross_entropy_backward(
    const element* x, const long long* target, const element* dout, element* dx, u64 rows, u64 width,
    float part
) {
    __shared__ float shared[32];
    const float scale = to_float(*dout) * part;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const element* from = x + row * width;
        const u64 wanted = u64(target[row]);
        float value[PACK], top;
        const float share = scale * inverse(raise(from, width, top, shared));
        PACKS_OF(p) {
            load<PACK>(from + p * PACK, value);
#pragma unroll
            for (int i = 0; i < PACK; ++i) {
                const float taken = p * PACK + i == wanted ? scale : 0.0f;
                value[i] = raised(value[i], top) * share - taken;
            }
            store<PACK>(dx + row * width + p * PACK, value);
        }
    }
}
