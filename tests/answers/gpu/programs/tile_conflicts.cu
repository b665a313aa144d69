// Tiles of 32 x 32 go through shared memory and are summed column by column there.
#include <cstdio>

__global__ void column_sums(const float* in, float* out, int n, int rounds) {  // also
    __shared__ float tile[32][32];  // also
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[((size_t)blockIdx.x * 32 + y) % n * 32 + x];
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < rounds; r++) {
        sum += tile[x][(y + r) & 31];  // answer
    }
    out[((size_t)blockIdx.x * 32 + y) % n * 32 + x] = sum;
}

int main() {
    const int n = 1 << 20;
    float *in, *out;
    cudaMalloc(&in, (size_t)n * 32 * sizeof(float));
    cudaMalloc(&out, (size_t)n * 32 * sizeof(float));
    cudaMemset(in, 0, (size_t)n * 32 * sizeof(float));
    for (int step = 0; step < 300; step++) {
        column_sums<<<n / 32, dim3(32, 32)>>>(in, out, n, 64);  // also
    }
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
