// MinHash signatures: polynomial hash of every document under many seeds.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

typedef unsigned long long u64;

#define DOCS (1 << 20)
#define LENGTH 256

__global__ void hash_documents(const unsigned char *text, u64 *best, u64 base, u64 mod)
{
    int doc = blockIdx.x * blockDim.x + threadIdx.x;
    u64 h = 7;
    for (int i = 0; i < LENGTH; i++) {
        u64 c = text[(size_t)i * DOCS + doc];
        h = (h * base + c) % mod;  // answer
    }
    if (h < best[doc])
        best[doc] = h;
}

__global__ void reset(u64 *best)
{
    best[blockIdx.x * blockDim.x + threadIdx.x] = ~0ull;
}

int main(int argc, char **argv)
{
    int seeds = argc > 1 ? atoi(argv[1]) : 2000;
    size_t bytes = (size_t)DOCS * LENGTH;
    unsigned char *host = (unsigned char *)malloc(bytes);
    unsigned int state = 12345;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        host[i] = 'a' + (state >> 24) % 26;
    }
    unsigned char *text;
    u64 *best;
    cudaMalloc(&text, bytes);
    cudaMalloc(&best, DOCS * sizeof(u64));
    cudaMemcpy(text, host, bytes, cudaMemcpyHostToDevice);

    u64 mod = 4294967291ull;
    u64 checksum = 0;
    u64 *signature = (u64 *)malloc(DOCS * sizeof(u64));
    reset<<<DOCS / 256, 256>>>(best);
    for (int seed = 0; seed < seeds; seed++) {
        u64 base = (2654435761ull * (seed + 1)) % mod;
        hash_documents<<<DOCS / 256, 256>>>(text, best, base, mod);
    }
    cudaMemcpy(signature, best, DOCS * sizeof(u64), cudaMemcpyDeviceToHost);
    for (int i = 0; i < DOCS; i++)
        checksum ^= signature[i];
    printf("%s: %llx\n", cudaGetErrorString(cudaGetLastError()), checksum);
    return 0;
}
