// PageRank by power iteration over the incoming links of each page (CSR).
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

const int PAGES = 1 << 21, PORTALS = 16, PORTAL_LINKS = 60000, ITERATIONS = 1200;
const float DAMPING = 0.85f;

__global__ void share(const float* rank, const int* out_degree, float* portion) {
    int page = blockIdx.x * blockDim.x + threadIdx.x;
    if (page < PAGES) portion[page] = rank[page] / max(out_degree[page], 1);
}

__global__ void gather(const int* __restrict__ offset, const int* __restrict__ source,
                       const float* __restrict__ portion, float* __restrict__ rank) {
    int page = blockIdx.x * blockDim.x + threadIdx.x;
    if (page >= PAGES) return;
    float sum = 0.0f;
    for (int e = offset[page]; e < offset[page + 1]; e++)  // answer
        sum += portion[source[e]];  // also
    rank[page] = (1.0f - DAMPING) / PAGES + DAMPING * sum;
}

static unsigned int state = 12345;
static unsigned int next_random() {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

int main() {
    std::vector<int> offset(PAGES + 1, 0), out_degree(PAGES, 0), source;
    for (int page = 0; page < PAGES; page++) {
        bool portal = page % (PAGES / PORTALS) == 777;  // also
        offset[page + 1] = offset[page] + (portal ? PORTAL_LINKS : 4 + (int)(next_random() % 17));
    }
    source.resize(offset[PAGES]);
    for (int& s : source) {
        s = next_random() % PAGES;
        out_degree[s]++;
    }
    int *d_offset, *d_source, *d_degree;
    float *rank, *portion;
    CHECK(cudaMalloc(&d_offset, offset.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_source, source.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_degree, out_degree.size() * sizeof(int)));
    CHECK(cudaMalloc(&rank, PAGES * sizeof(float)));
    CHECK(cudaMalloc(&portion, PAGES * sizeof(float)));
    CHECK(cudaMemcpy(d_offset, offset.data(), offset.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_source, source.data(), source.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_degree, out_degree.data(), out_degree.size() * sizeof(int), cudaMemcpyHostToDevice));
    std::vector<float> host(PAGES, 1.0f / PAGES);
    CHECK(cudaMemcpy(rank, host.data(), PAGES * sizeof(float), cudaMemcpyHostToDevice));
    for (int i = 0; i < ITERATIONS; i++) {
        share<<<PAGES / 256, 256>>>(rank, d_degree, portion);
        gather<<<PAGES / 256, 256>>>(d_offset, d_source, portion, rank);  // also
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(host.data(), rank, PAGES * sizeof(float), cudaMemcpyDeviceToHost));
    int best = 0;
    for (int page = 1; page < PAGES; page++) if (host[page] > host[best]) best = page;
    printf("%zu links, best page %d rank %.3e\n", source.size(), best, host[best]);
    CHECK(cudaFree(d_offset)); CHECK(cudaFree(d_source)); CHECK(cudaFree(d_degree));
    CHECK(cudaFree(rank)); CHECK(cudaFree(portion));
    return 0;
}
