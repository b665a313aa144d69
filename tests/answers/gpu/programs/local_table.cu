// A thread keeps a table of 64 numbers that it indexes by data: the table lives in local memory.
#include <cstdio>

__global__ void ranks(const int* keys, int* out, int each) {  // also
    int table[64];
    for (int i = 0; i < 64; i++) table[i] = 0;  // also
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < each; i++) {
        int key = keys[(at + i * 977) & 0xffff];
        table[key & 63] += 1;  // answer
    }
    int best = 0;
    for (int i = 1; i < 64; i++) if (table[i] > table[best]) best = i;  // also
    out[at] = best;
}

int main() {
    const int count = 1 << 20;
    int *keys, *out;
    cudaMalloc(&keys, 65536 * sizeof(int));
    cudaMalloc(&out, count * sizeof(int));
    cudaMemset(keys, 7, 65536 * sizeof(int));
    for (int step = 0; step < 200; step++) ranks<<<count / 256, 256>>>(keys, out, 256);  // also
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
