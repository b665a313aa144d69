// Particles are structures of 64 bytes; a step reads and writes one number of each.
#include <cstdio>

struct Particle { float x, y, z, vx, vy, vz, mass, charge, rest[8]; };

__global__ void move(Particle* all, float step, int count) {  // also
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) all[i].x += step * all[i].vx;  // answer
}

int main() {
    const int count = 1 << 24;
    Particle* all;
    cudaMalloc(&all, count * sizeof(Particle));
    cudaMemset(all, 0, count * sizeof(Particle));
    for (int step = 0; step < 2000; step++) move<<<count / 256, 256>>>(all, 0.01f, count);  // also
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
