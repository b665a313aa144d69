// Layer norm and cross entropy over rows of WIDTH elements, in registers from the first load to the last store. LANES
// neighbouring threads of a warp share a row, each with PACKS packs of PACK elements; all are chosen when this is
// compiled, so that loops are unrolled and nothing is indexed at run time. Wider rows are `wide.cu`'s.
#include "values.cuh"

#define HELD (PACKS * PACK)
#define FULL (WIDTH == LANES * HELD)  // no thread has packs behind the row's end

struct Row {
    u64 row;
    bool there;
    int lane;
    __device__ __forceinline__ Row(u64 rows, u64 row) : row(row), there(row < rows), lane(threadIdx.x % LANES) {}
    __device__ __forceinline__ int column(int pack) const { return (pack * LANES + lane) * PACK; }
    __device__ __forceinline__ bool inside(int pack) const { return FULL || column(pack) < WIDTH; }
    __device__ __forceinline__ void load_row(const element* x, float (&value)[HELD], float absent) const {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (there && inside(p)) load<PACK>(x + row * WIDTH + column(p), value + p * PACK);
            else
#pragma unroll
                for (int i = 0; i < PACK; ++i) value[p * PACK + i] = absent;
        }
    }
    __device__ __forceinline__ void store_row(element* y, const float (&value)[HELD]) const {
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            if (there && inside(p)) store<PACK>(y + row * WIDTH + column(p), value + p * PACK);
    }
    // The largest and the sum of exp(value - largest), which replaces value. A row that is not there has 0 and no sum.
    __device__ __forceinline__ float raise(float (&value)[HELD], float& top) const {
        top = NOTHING;
#pragma unroll
        for (int i = 0; i < HELD; ++i) top = fmaxf(top, value[i]);
        top = lanes_most<LANES>(top);
        if (!there) top = 0.0f;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; ++i) sum += value[i] = raised(value[i], top);
        return lanes_sum<LANES>(sum);
    }
};

// Whole warps go round together: a row past the end is loaded as zeros, and not stored.
struct Walk {
    u64 first, stride;
    __device__ __forceinline__ Walk()
        : first((u64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES), stride(u64(gridDim.x) * blockDim.x / LANES) {}
    __device__ __forceinline__ bool goes_on(u64 rows) const { return first - (threadIdx.x % 32) / LANES < rows; }
};

__device__ __forceinline__ void load_columns(const element* from, float (&into)[HELD]) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int column = (p * LANES + threadIdx.x % LANES) * PACK;
        if (FULL || column < WIDTH) load<PACK>(from + column, into + p * PACK);
        else
#pragma unroll
            for (int i = 0; i < PACK; ++i) into[p * PACK + i] = 0.0f;
    }
}

extern "C" __global__ void layer_norm(
    const element* x, const element* w, const element* b, element* y, float* means, float* rstds, u64 rows, float eps
) {
    float weight[HELD], bias[HELD];
    load_columns(w, weight);
    load_columns(b, bias);
    for (Walk at; at.goes_on(rows); at.first += at.stride) {
        const Row own(rows, at.first);
        float value[HELD];
        own.load_row(x, value, 0.0f);
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; ++i) sum += value[i];
        const float mean = lanes_sum<LANES>(sum) * (1.0f / WIDTH);
        float squares = 0.0f;
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            if (own.inside(p))
#pragma unroll
                for (int i = p * PACK; i < (p + 1) * PACK; ++i) {
                    value[i] -= mean;
                    squares += value[i] * value[i];
                }
        const float rstd = rsqrtf(lanes_sum<LANES>(squares) * (1.0f / WIDTH) + eps);
#pragma unroll
        for (int i = 0; i < HELD; ++i) value[i] = value[i] * rstd * weight[i] + bias[i];
        own.store_row(y, value);
        if (means != nullptr && own.lane == 0 && own.there) {
            means[own.row] = mean;
            rstds[own.row] = rstd;
        }
    }
}

// Each block keeps its sums for weight and bias in registers and leaves them as a row of `partial`. Where there is no row
// or no column the gradient is 0, and adds nothing anywhere.
extern "C" __global__ void layer_norm_backward(
    const element* dy, const element* x, const element* w, const float* means, const float* rstds, element* dx,
    float* partial, u64 rows
) {
    float weight[HELD], dw[HELD], db[HELD];
    load_columns(w, weight);
#pragma unroll
    for (int i = 0; i < HELD; ++i) dw[i] = db[i] = 0.0f;
    for (Walk at; at.goes_on(rows); at.first += at.stride) {
        const Row own(rows, at.first);
        float value[HELD], grad[HELD];
        own.load_row(x, value, 0.0f);
        own.load_row(dy, grad, 0.0f);
        const float mean = own.there ? means[own.row] : 0.0f, rstd = own.there ? rstds[own.row] : 0.0f;
        float along = 0.0f, level = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            value[i] = (value[i] - mean) * rstd;
            dw[i] += grad[i] * value[i];
            db[i] += grad[i];
            grad[i] *= weight[i];
            along += grad[i] * value[i];
            level += grad[i];
        }
        along = lanes_sum<LANES>(along) * (1.0f / WIDTH);
        level = lanes_sum<LANES>(level) * (1.0f / WIDTH);
#pragma unroll
        for (int i = 0; i < HELD; ++i) grad[i] = (grad[i] - level - value[i] * along) * rstd;
        own.store_row(dx, grad);
    }
    // First over the rows of a warp, then over its warps through shared memory.
    __shared__ float sums[2 * WIDTH];
    for (int i = threadIdx.x; i < 2 * WIDTH; i += blockDim.x) sums[i] = 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
#pragma unroll
        for (int step = 16; step >= LANES; step /= 2) {
            dw[i] += __shfl_xor_sync(0xffffffffu, dw[i], step);
            db[i] += __shfl_xor_sync(0xffffffffu, db[i], step);
        }
    }
    for (u32 warp = 0; warp < blockDim.x / 32; ++warp) {  // one after the other: the order stays the same
        if (threadIdx.x / 32 == warp && threadIdx.x % 32 < LANES)
#pragma unroll
            for (int i = 0; i < HELD; ++i) {
                const int column = ((i / PACK) * LANES + threadIdx.x % LANES) * PACK + i % PACK;
                if (FULL || column < WIDTH) {
                    sums[column] += dw[i];
                    sums[WIDTH + column] += db[i];
                }
            }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < 2 * WIDTH; i += blockDim.x) partial[u64(blockIdx.x) * 2 * WIDTH + i] = sums[i];
}

// `part` is 1 / rows: the host divides, once.
extern "C" __global__ void cross_entropy(
    const element* x, const long long* target, float* partial, u32* done, element* out, u64 rows, float part
) {
    __shared__ float shared[32];
    float losses = 0.0f;
    for (Walk at; at.goes_on(rows); at.first += at.stride) {
        const Row own(rows, at.first);
        float value[HELD], top;
        own.load_row(x, value, NOTHING);
        const long long wanted = own.there ? target[own.row] : 0;
        const float sum = own.raise(value, top);
        // The target's value is loaded once more: to look for it among all of the row's costs as much as their sum.
        if (own.there && own.lane == 0) losses += row_loss(x + own.row * WIDTH, wanted, WIDTH, top, sum);
    }
    finish(losses, partial, done, out, part, shared);
}

extern "C" __global__ void cross_entropy_backward(
    const element* x, const long long* target, const element* dout, element* dx, u64 rows, float part
) {
    const float scale = to_float(*dout) * part;
    for (Walk at; at.goes_on(rows); at.first += at.stride) {
        const Row own(rows, at.first);
        float value[HELD], top;
        own.load_row(x, value, NOTHING);
        const long long wanted = own.there ? target[own.row] : -1;
        const float share = scale * inverse(own.raise(value, top));
#pragma unroll
        for (int i = 0; i < HELD; ++i) value[i] *= share;
        own.store_row(dx, value);
        // The thread that stored the target's column stores it again.
        if (u64(wanted) < WIDTH && wanted / PACK % LANES == own.lane) {
            const u64 place = own.row * WIDTH + wanted;
            dx[place] = to_element(raised(to_float(x[place]), top) * share - scale);
        }
    }
}
