// Every thread adds to the same counter.
#include <cstdio>

__global__ void count_positive(const float* in, unsigned* total, size_t n) {  // also
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n && in[i] >= 0.0f) {
        atomicMax(&total[0], (unsigned)(i * 2654435761u));  // answer
    }
}

int main() {
    const size_t n = 1 << 24;
    float* in;
    unsigned* total;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&total, 2 * sizeof(unsigned));
    cudaMemset(in, 0, n * sizeof(float));
    cudaMemset(total, 0, 2 * sizeof(unsigned));
    for (int step = 0; step < 60; step++) {
        count_positive<<<n / 256, 256>>>(in, total, n);  // also
    }
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
