// Draw the next token of every sequence from its logits.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define VOCAB 32768
#define ROWS 512
#define THREADS 256
#define STEPS 5000
__device__ float block_reduce(float v, bool want_max, float *shared)
{
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            float a = shared[threadIdx.x], b = shared[threadIdx.x + half];
            shared[threadIdx.x] = want_max ? fmaxf(a, b) : a + b;
        }
        __syncthreads();
    }
    float result = shared[0];
    __syncthreads();
    return result;
}

__global__ void sample(const float *logits, const float *uniform, float *probs, int *token)
{
    __shared__ float shared[THREADS];
    const float *row = logits + (size_t)blockIdx.x * VOCAB;
    float *p = probs + (size_t)blockIdx.x * VOCAB;
    float top = -1e30f, sum = 0.0f;
    for (int i = threadIdx.x; i < VOCAB; i += THREADS)
        top = fmaxf(top, row[i]);
    top = block_reduce(top, true, shared);
    for (int i = threadIdx.x; i < VOCAB; i += THREADS) {
        float e = __expf(row[i] - top);
        p[i] = e;
        sum += e;
    }
    sum = block_reduce(sum, false, shared);
    if (threadIdx.x == 0) {  // answer
        float target = uniform[blockIdx.x] * sum, running = 0.0f;
        int pick = 0;
        for (; pick < VOCAB - 1; pick++) {  // answer
            running += p[pick];  // answer
            if (running >= target) break;  // answer
        }
        token[blockIdx.x] = pick;
    }
}
int main()
{
    size_t count = (size_t)ROWS * VOCAB;
    float *host = (float *)malloc(count * sizeof(float)), uniform[ROWS];
    srand(2);
    for (size_t i = 0; i < count; i++) host[i] = 4.0f * rand() / RAND_MAX;
    for (int i = 0; i < ROWS; i++) uniform[i] = rand() / (float)RAND_MAX;
    float *logits, *probs, *u;
    int *token, picked[ROWS];
    cudaMalloc(&logits, count * sizeof(float));
    cudaMalloc(&probs, count * sizeof(float));
    cudaMalloc(&u, sizeof(uniform));
    cudaMalloc(&token, sizeof(picked));
    cudaMemcpy(logits, host, count * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(u, uniform, sizeof(uniform), cudaMemcpyHostToDevice);
    for (int step = 0; step < STEPS; step++)
        sample<<<ROWS, THREADS>>>(logits, u, probs, token);
    cudaMemcpy(picked, token, sizeof(picked), cudaMemcpyDeviceToHost);
    printf("%s: %d %d\n", cudaGetErrorString(cudaGetLastError()), picked[0], picked[1]);
    return 0;
}
