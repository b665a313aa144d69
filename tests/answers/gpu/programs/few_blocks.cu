// Each of four blocks sums a quarter of a long array.
#include <cstdio>

__global__ void sums(const float* data, float* out, int each) {  // also
    __shared__ float part[256];
    float sum = 0;
    for (int i = threadIdx.x; i < each; i += blockDim.x)  // also
        sum += data[(size_t)blockIdx.x * each + i];  // also
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

int main() {
    const int each = 4 << 20;
    float *data, *out;
    cudaMalloc(&data, 4 * (size_t)each * sizeof(float));
    cudaMalloc(&out, 4 * sizeof(float));
    cudaMemset(data, 0, 4 * (size_t)each * sizeof(float));
    for (int step = 0; step < 300; step++) sums<<<4, 256>>>(data, out, each);  // answer
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
