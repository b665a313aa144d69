// Reed-Solomon parity for an object store: ten data shards, four parity shards per stripe.
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

const int DATA = 10, PARITY = 4, STRIPES = 500;
const size_t SHARD = (size_t)1 << 25;

__constant__ unsigned char gf_exp[512];  // also
__constant__ unsigned char gf_log[256];  // also
__constant__ unsigned char coding_log[PARITY * DATA];

__global__ void fill(unsigned int* words, size_t n, unsigned int seed) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int h = (unsigned int)i * 2654435761u + seed;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13; h *= 3266489917u; h ^= h >> 16;
    words[i] = h;
}

__global__ void encode(const unsigned char* __restrict__ data, unsigned char* __restrict__ parity) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= SHARD) return;
    unsigned char sum[PARITY] = {0, 0, 0, 0};
    for (int d = 0; d < DATA; d++) {
        unsigned char value = data[d * SHARD + i];
        if (value == 0) continue;
        int power = gf_log[value];  // also
        #pragma unroll
        for (int p = 0; p < PARITY; p++)
            sum[p] ^= gf_exp[power + coding_log[p * DATA + d]];  // answer
    }
    #pragma unroll
    for (int p = 0; p < PARITY; p++)
        parity[p * SHARD + i] = sum[p];
}

int main() {
    unsigned char exps[512], logs[256] = {0}, coding[PARITY * DATA];
    for (int i = 0, x = 1; i < 255; i++) {
        exps[i] = exps[i + 255] = (unsigned char)x;
        logs[x] = (unsigned char)i;
        x <<= 1;
        if (x & 0x100) x ^= 0x11d;
    }
    exps[510] = exps[511] = 0;
    for (int p = 0; p < PARITY; p++)
        for (int d = 0; d < DATA; d++) coding[p * DATA + d] = (unsigned char)((255 - logs[p ^ (PARITY + d)]) % 255);
    CHECK(cudaMemcpyToSymbol(gf_exp, exps, sizeof(exps)));
    CHECK(cudaMemcpyToSymbol(gf_log, logs, sizeof(logs)));
    CHECK(cudaMemcpyToSymbol(coding_log, coding, sizeof(coding)));
    unsigned char *data, *parity;
    CHECK(cudaMalloc(&data, DATA * SHARD));
    CHECK(cudaMalloc(&parity, PARITY * SHARD));
    size_t words = DATA * SHARD / 4;
    for (int stripe = 0; stripe < STRIPES; stripe++) {
        fill<<<(unsigned)((words + 255) / 256), 256>>>((unsigned int*)data, words, 77u * stripe);
        encode<<<(unsigned)((SHARD + 255) / 256), 256>>>(data, parity);
        CHECK(cudaGetLastError());
    }
    std::vector<unsigned char> host(PARITY * SHARD);
    CHECK(cudaMemcpy(host.data(), parity, host.size(), cudaMemcpyDeviceToHost));
    unsigned int check = 0;
    for (unsigned char b : host) check = check * 31 + b;
    printf("%d stripes, last parity checksum %08x\n", STRIPES, check);
    CHECK(cudaFree(data));
    CHECK(cudaFree(parity));
    return 0;
}
