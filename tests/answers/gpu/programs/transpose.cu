// A matrix is transposed 400 times: rows are read in order, columns are written.
#include <cstdio>

__global__ void transpose(const float* in, float* out, int n) {  // also
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) {
        out[(size_t)x * n + y] = in[(size_t)y * n + x];  // answer
    }
}

__global__ void scale(float* data, float factor, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

int main() {
    const int n = 8192;
    size_t count = (size_t)n * n;
    float *in, *out;
    cudaMalloc(&in, count * sizeof(float));
    cudaMalloc(&out, count * sizeof(float));
    cudaMemset(in, 0, count * sizeof(float));
    dim3 block(32, 8), grid(n / 32, n / 8);
    for (int step = 0; step < 400; step++) {
        transpose<<<grid, block>>>(in, out, n);  // also
        scale<<<count / 256, 256>>>(out, 0.5f, count);
    }
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
