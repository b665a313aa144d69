// Remove specks from scanned pages with a median over each pixel's neighbourhood.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t err = (call);                                            \
        if (err != cudaSuccess) {                                            \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

const int W = 2048, H = 2048, PAGES = 8;

__global__ void median(const float* page, float* clean, int radius) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int side = 2 * radius + 1;
    float* window = (float*)malloc(side * side * sizeof(float));  // answer
    if (window == nullptr) return;
    int n = 0;
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++) {
            int px = min(max(x + dx, 0), W - 1);
            int py = min(max(y + dy, 0), H - 1);
            float v = page[py * W + px];
            int j = n++;
            while (j > 0 && window[j - 1] > v) {
                window[j] = window[j - 1];
                j--;
            }
            window[j] = v;
        }
    clean[y * W + x] = window[n / 2];
    free(window);  // answer
}

int main() {
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)1 << 30));
    std::vector<float> host((size_t)W * H);
    srand(1);
    for (auto& v : host) v = rand() % 50 == 0 ? 0.0f : 0.9f + 0.1f * (rand() / (float)RAND_MAX);
    float *page, *clean;
    CHECK(cudaMalloc(&page, sizeof(float) * W * H));
    CHECK(cudaMalloc(&clean, sizeof(float) * W * H));
    CHECK(cudaMemcpy(page, host.data(), sizeof(float) * W * H, cudaMemcpyHostToDevice));
    dim3 block(32, 8), grid((W + 31) / 32, (H + 7) / 8);
    for (int i = 0; i < PAGES; i++) {
        median<<<grid, block>>>(page, clean, 1);
        CHECK(cudaGetLastError());
        float* swap = page; page = clean; clean = swap;
    }
    CHECK(cudaMemcpy(host.data(), page, sizeof(float) * W * H, cudaMemcpyDeviceToHost));
    int specks = 0;
    for (float v : host) specks += v < 0.5f;
    printf("specks left %d of %d pixels\n", specks, W * H);
    CHECK(cudaFree(page));
    CHECK(cudaFree(clean));
    return 0;
}
