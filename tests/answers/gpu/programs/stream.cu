// Push a long sensor recording through a nonlinear filter, chunk by chunk.
#include <cstdio>
#include <cuda_runtime.h>

#define CHUNK (16 * 1024 * 1024)
#define CHUNKS 16
#define FRAMES 40
#define ROUNDS 700

__global__ void filter(const float *in, float *out, float gain)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    float y = x;
    for (int k = 0; k < ROUNDS; k++) {
        y = fmaf(y, 0.75f, gain * x);
        y = fmaf(y, -0.1f * y, y);
    }
    out[i] = y;
}

int main()
{
    size_t total = (size_t)CHUNK * CHUNKS;
    size_t bytes = (size_t)CHUNK * sizeof(float);
    float *recording, *filtered, *in, *out;
    cudaMallocHost(&recording, total * sizeof(float));
    cudaMallocHost(&filtered, total * sizeof(float));
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, bytes);
    for (size_t i = 0; i < total; i++)
        recording[i] = (float)(i % 1000) * 0.001f;

    for (int frame = 0; frame < FRAMES; frame++) {
        float gain = 0.2f + 0.001f * frame;
        for (int c = 0; c < CHUNKS; c++) {
            size_t at = (size_t)c * CHUNK;
            cudaMemcpy(in, recording + at, bytes, cudaMemcpyHostToDevice);  // answer
            filter<<<CHUNK / 256, 256>>>(in, out, gain);  // answer
            cudaMemcpy(filtered + at, out, bytes, cudaMemcpyDeviceToHost);  // answer
        }
    }
    printf("%s: %f %f\n", cudaGetErrorString(cudaGetLastError()),
           filtered[1], filtered[total - 1]);
    cudaFree(in);
    cudaFree(out);
    cudaFreeHost(recording);
    cudaFreeHost(filtered);
    return 0;
}
