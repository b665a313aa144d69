// Auto-exposure for a line-scan camera: brightness histogram of every frame in the capture ring.
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

const int W = 8192, H = 4096, RING = 4, FRAMES = 350, BINS = 256;
const size_t BYTES = sizeof(unsigned short) * W * H;

__global__ void histogram(const ushort4* __restrict__ pixels, int n, unsigned int* __restrict__ bins) {
    __shared__ unsigned int local[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        ushort4 p = pixels[i];
        atomicAdd(&local[p.x >> 8], 1u);
        atomicAdd(&local[p.y >> 8], 1u);
        atomicAdd(&local[p.z >> 8], 1u);
        atomicAdd(&local[p.w >> 8], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}

struct Camera {
    std::vector<std::vector<unsigned short>> ring;
    int next = 0;
    Camera() : ring(RING, std::vector<unsigned short>((size_t)W * H)) {
        unsigned int s = 1;
        for (auto& frame : ring)
            for (auto& v : frame) v = (unsigned short)((s = s * 1664525u + 1013904223u) >> 16);
    }
    unsigned short* grab() { return ring[next++ % RING].data(); }
};

void upload(unsigned short* device, unsigned short* frame, cudaStream_t stream) {  // also
    CHECK(cudaHostRegister(frame, BYTES, cudaHostRegisterDefault));  // answer
    CHECK(cudaMemcpyAsync(device, frame, BYTES, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));  // also
    CHECK(cudaHostUnregister(frame));  // also
}

int main() {
    Camera camera;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    unsigned short* device;
    unsigned int* bins;
    CHECK(cudaMalloc(&device, BYTES));
    CHECK(cudaMalloc(&bins, BINS * sizeof(unsigned int)));
    std::vector<unsigned int> host(BINS);
    double exposure = 1.0;
    for (int frame = 0; frame < FRAMES; frame++) {
        upload(device, camera.grab(), stream);  // also
        CHECK(cudaMemsetAsync(bins, 0, BINS * sizeof(unsigned int), stream));
        histogram<<<528, 256, 0, stream>>>((const ushort4*)device, W * H / 4, bins);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(host.data(), bins, BINS * sizeof(unsigned int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        double bright = 0.0;
        for (int b = 0; b < BINS; b++) bright += b * (double)host[b];
        exposure *= 1.0 + 0.1 * (128.0 - bright / ((double)W * H)) / 128.0;
    }
    printf("frames %d exposure %.5f\n", FRAMES, exposure);
    CHECK(cudaFree(device));
    CHECK(cudaFree(bins));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
