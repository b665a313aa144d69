// One thread of eight iterates 60 times as long as the others of its warp.
#include <cstdio>

__global__ void iterate(float* data, size_t n) {  // also
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    float value = data[i % n] + 0.1f;
    int rounds = i % 8 == 0 ? 1200 : 20;  // also
    for (int r = 0; r < rounds; r++) {  // also
        value = value * 0.999f + sinf(value);  // answer
    }
    data[i % n] = value;
}

int main() {
    const size_t n = 1 << 22;
    float* data;
    cudaMalloc(&data, n * sizeof(float));
    cudaMemset(data, 0, n * sizeof(float));
    for (int step = 0; step < 200; step++) {
        iterate<<<n / 256, 256>>>(data, n);  // also
    }
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
