// Gravitational star cluster, direct summation, leapfrog in time.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define N 65536
#define BLOCK 256
#define STEPS 200
#define SOFT 1e-4  // answer
#define DT 0.001f

__global__ void accelerations(const float4 *pos, float4 *acc)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 me = pos[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int base = 0; base < N; base += BLOCK) {
        tile[threadIdx.x] = pos[base + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < BLOCK; j++) {
            float4 other = tile[j];
            float dx = other.x - me.x;
            float dy = other.y - me.y;
            float dz = other.z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz;
            float inv = 1.0 / sqrt(r2 + SOFT);  // answer
            float s = other.w * inv * inv * inv;
            ax += s * dx;
            ay += s * dy;
            az += s * dz;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0.0f);
}

__global__ void move(float4 *pos, float4 *vel, const float4 *acc)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 v = vel[i], a = acc[i], p = pos[i];
    v.x += DT * a.x; v.y += DT * a.y; v.z += DT * a.z;
    p.x += DT * v.x; p.y += DT * v.y; p.z += DT * v.z;
    vel[i] = v;
    pos[i] = p;
}

int main()
{
    float4 *host = (float4 *)malloc(N * sizeof(float4));
    srand(1);
    for (int i = 0; i < N; i++)
        host[i] = make_float4(rand() / (float)RAND_MAX, rand() / (float)RAND_MAX,
                              rand() / (float)RAND_MAX, 1.0f / N);
    float4 *pos, *vel, *acc;
    cudaMalloc(&pos, N * sizeof(float4));
    cudaMalloc(&vel, N * sizeof(float4));
    cudaMalloc(&acc, N * sizeof(float4));
    cudaMemcpy(pos, host, N * sizeof(float4), cudaMemcpyHostToDevice);
    cudaMemset(vel, 0, N * sizeof(float4));
    for (int step = 0; step < STEPS; step++) {
        accelerations<<<N / BLOCK, BLOCK>>>(pos, acc);
        move<<<N / BLOCK, BLOCK>>>(pos, vel, acc);
    }
    cudaMemcpy(host, pos, N * sizeof(float4), cudaMemcpyDeviceToHost);
    printf("%s: %f %f %f\n", cudaGetErrorString(cudaGetLastError()),
           host[0].x, host[0].y, host[0].z);
    return 0;
}
