// Clean land-cover maps: each cell takes the class that is most frequent around it.
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

const int W = 8192, H = 8192, CLASSES = 24, RADIUS = 3, TILES = 500;

__global__ void classify(unsigned char* cover, unsigned int seed) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    unsigned int h = (y * (unsigned int)W + x) * 2654435761u + seed;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13; h *= 3266489917u; h ^= h >> 16;
    unsigned int field = (x / 64 + 3 * (y / 64) + seed) % CLASSES;
    cover[(size_t)y * W + x] = (h & 7) < 2 ? field : (h >> 8) % CLASSES;
}

__global__ void majority(const unsigned char* __restrict__ cover, unsigned char* __restrict__ clean) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int votes[CLASSES];  // also
    for (int c = 0; c < CLASSES; c++) votes[c] = 0;  // also
    for (int dy = -RADIUS; dy <= RADIUS; dy++) {
        const unsigned char* row = cover + (size_t)min(max(y + dy, 0), H - 1) * W;
        for (int dx = -RADIUS; dx <= RADIUS; dx++)
            votes[row[min(max(x + dx, 0), W - 1)]]++;  // answer
    }
    int best = 0, most = votes[0];
    for (int c = 1; c < CLASSES; c++)
        if (votes[c] > most) {  // also
            most = votes[c];
            best = c;
        }
    clean[(size_t)y * W + x] = best;
}

int main() {
    unsigned char *cover, *clean;
    CHECK(cudaMalloc(&cover, (size_t)W * H));
    CHECK(cudaMalloc(&clean, (size_t)W * H));
    dim3 block(32, 8), grid(W / 32, H / 8);
    for (int tile = 0; tile < TILES; tile++) {
        classify<<<grid, block>>>(cover, tile);
        majority<<<grid, block>>>(cover, clean);
        CHECK(cudaGetLastError());
    }
    std::vector<unsigned char> host((size_t)W * H);
    CHECK(cudaMemcpy(host.data(), clean, host.size(), cudaMemcpyDeviceToHost));
    std::vector<long> area(CLASSES, 0);
    for (unsigned char c : host) area[c]++;
    printf("last tile: class 0 %ld cells, class %d %ld cells\n", area[0], CLASSES - 1, area[CLASSES - 1]);
    CHECK(cudaFree(cover));
    CHECK(cudaFree(clean));
    return 0;
}
