// Heat on a plate: Jacobi steps, with the energy of the plate logged as it goes.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t err = (call);                                            \
        if (err != cudaSuccess) {                                            \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

const int W = 8192, H = 8192, STEPS = 24;

__global__ void start(float* a, float* b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float v = (x == 0 || y == 0 || x == W - 1 || y == H - 1) ? 100.0f : 20.0f;
    a[(size_t)y * W + x] = v;
    b[(size_t)y * W + x] = v;
}

__global__ void jacobi(const float* __restrict__ in, float* __restrict__ out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) return;
    size_t i = (size_t)y * W + x;
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - W] + in[i + W]);  // answer
}

double energy(const float* plate) {  // answer
    double sum = 0.0;
    for (int y = 0; y < H; y++)  // answer
        for (int x = 0; x < W; x += 64)  // answer
            sum += plate[(size_t)y * W + x];  // answer
    return sum / (H * (W / 64.0));
}

int main() {
    float *now, *next;
    CHECK(cudaMallocManaged(&now, sizeof(float) * W * H));  // answer
    CHECK(cudaMallocManaged(&next, sizeof(float) * W * H));  // answer
    dim3 block(32, 8), grid(W / 32, H / 8);
    start<<<grid, block>>>(now, next);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    double before = 20.0;
    for (int step = 0; step < STEPS; step++) {
        jacobi<<<grid, block>>>(now, next);  // answer
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());  // answer
        float* swap = now; now = next; next = swap;
        double after = energy(now);  // answer
        if (step % 4 == 0) printf("step %d energy %.5f change %.2e\n", step, after, fabs(after - before));
        before = after;
    }
    CHECK(cudaFree(now));
    CHECK(cudaFree(next));
    return 0;
}
