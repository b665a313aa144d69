// Layer norm and cross entropy over rows of WIDTH elements, in registers from the first load to the last store. LANES
// neighbouring threads of a warp share a row, each with PACKS packs of PACK elements; all are chosen when this is
// compiled, so that loops are unrolled and nothing is indexed at run time. A block has WARPS warps. Wider rows are
// `wide.cu`'s.
#include "values.cuh"

#define HELD (PACKS * PACK)
#define FULL (WIDTH == LANES * HELD)  // no thread has packs behind the row's end

// Where there is no such row, the last one is taken in its place, and nothing is stored.
struct Row {
    bool there;
    u64 row;
    int lane;
    __device__ __forceinline__ Row(u64 rows, u64 row) : there(row < rows), row(min(row, rows - 1)), lane(threadIdx.x % LANES) {}
    __device__ __forceinline__ int column(int pack) const { return (pack * LANES + lane) * PACK; }
    __device__ __forceinline__ bool inside(int pack) const { return FULL || column(pack) < WIDTH; }
    __device__ __forceinline__ void load_row(const element* x, float (&value)[HELD], float absent) const {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (inside(p)) load<PACK>(x + row * WIDTH + column(p), value + p * PACK);
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
    // The largest and the sum of exp(value - largest), which replaces value.
    __device__ __forceinline__ float raise(float (&value)[HELD], float& top) const {
        top = NOTHING;
#pragma unroll
        for (int i = 0; i < HELD; ++i) top = fmaxf(top, value[i]);
        top = lanes_most<LANES>(top);
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; ++i) sum += value[i] = raised(value[i], top);
        return lanes_sum<LANES>(sum);
    }
};

// Whole warps go round together.
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

// The grid covers the rows. Weight and bias are loaded when a row's own numbers are known: from the first cache, where
// other warps left them. Held in registers from the start they would leave room for half as many warps.
extern "C" __global__ void layer_norm(
    const element* x, const element* w, const element* b, element* y, float* means, float* rstds, u64 rows, float eps
) {
    const Row own(rows, (u64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES);
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
    if (!own.there) return;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        if (!own.inside(p)) continue;
        float weight[PACK], bias[PACK];
        load<PACK>(w + own.column(p), weight);
        load<PACK>(b + own.column(p), bias);
#pragma unroll
        for (int i = 0; i < PACK; ++i) value[p * PACK + i] = value[p * PACK + i] * rstd * weight[i] + bias[i];
        store<PACK>(y + own.row * WIDTH + own.column(p), value + p * PACK);
    }
    if (means != nullptr && own.lane == 0) {
        means[own.row] = mean;
        rstds[own.row] = rstd;
    }
}

// Each block keeps its sums for weight and bias in registers and leaves them as a row of `partial`. Where there is no
// column the gradient is 0, and adds nothing anywhere.
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
        const float mean = means[own.row], rstd = own.there ? rstds[own.row] : 0.0f, counts = own.there ? 1.0f : 0.0f;
        float along = 0.0f, level = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            value[i] = (value[i] - mean) * rstd;
            dw[i] += grad[i] * value[i];
            db[i] += grad[i] * counts;
            grad[i] *= weight[i];
            along += grad[i] * value[i];
            level += grad[i];
        }
        along = lanes_sum<LANES>(along) * (1.0f / WIDTH) * rstd;
        level = lanes_sum<LANES>(level) * (1.0f / WIDTH) * rstd;
#pragma unroll
        for (int i = 0; i < HELD; ++i) grad[i] = grad[i] * rstd - level - value[i] * along;
        own.store_row(dx, grad);
    }
    // First over the rows of a warp, then over the warps through shared memory, where a warp's lanes lie side by side.
    __shared__ float sums[WARPS][2][HELD * LANES];
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
#pragma unroll
        for (int step = 16; step >= LANES; step /= 2) {
            dw[i] += __shfl_xor_sync(0xffffffffu, dw[i], step);
            db[i] += __shfl_xor_sync(0xffffffffu, db[i], step);
        }
        if (threadIdx.x % 32 < LANES) {
            sums[threadIdx.x / 32][0][i * LANES + threadIdx.x % LANES] = dw[i];
            sums[threadIdx.x / 32][1][i * LANES + threadIdx.x % LANES] = db[i];
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < HELD * LANES; at += blockDim.x) {
        const int i = at / LANES, column = (i / PACK * LANES + at % LANES) * PACK + i % PACK;
        if (!FULL && column >= WIDTH) continue;
        float whole[2] = {0.0f, 0.0f};
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            whole[0] += sums[warp][0][at];
            whole[1] += sums[warp][1][at];
        }
        partial[u64(blockIdx.x) * 2 * WIDTH + column] = whole[0];
        partial[u64(blockIdx.x) * 2 * WIDTH + WIDTH + column] = whole[1];
    }
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
        // The target's value is loaded once more, before the sum that hides how long it takes: to look for it among all
        // of the row's costs as much as their sum. A label that is no class gives NaN.
        const u64 wanted = u64(target[own.row]);
        const float chosen = to_float(x[own.row * WIDTH + (wanted < WIDTH ? wanted : 0)]);
        const float sum = own.raise(value, top);
        if (own.there) losses += wanted < WIDTH ? log2_of(sum) * LN_2 + (top - chosen) : NO_NUMBER;
    }
    finish(threadIdx.x % LANES == 0 ? losses : 0.0f, partial, done, out, part, shared);
}

extern "C" __global__ void cross_entropy_backward(
    const element* x, const long long* target, const element* dout, element* dx, u64 rows, float part
) {
    const float scale = to_float(*dout) * part;
    for (Walk at; at.goes_on(rows); at.first += at.stride) {
        const Row own(rows, at.first);
        float value[HELD], top;
        own.load_row(x, value, NOTHING);
        const long long wanted = target[own.row];
        const float share = scale * inverse(own.raise(value, top));
#pragma unroll
        for (int i = 0; i < HELD; ++i) value[i] *= share;
        own.store_row(dx, value);
        // The thread that stored the target's column stores it again.
        if (own.there && u64(wanted) < WIDTH && wanted / PACK % LANES == own.lane) {
            const u64 place = own.row * WIDTH + wanted;
            dx[place] = to_element(raised(to_float(x[place]), top) * share - scale);
        }
    }
}
