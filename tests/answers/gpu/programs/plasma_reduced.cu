// Push charged particles through a wave field with an adaptive time step.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t e = (call);                                                              \
        if (e != cudaSuccess) {                                                              \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));   \
            std::exit(1);                                                                    \
        }                                                                                    \
    } while (0)

constexpr int N = 4 << 20;
constexpr int MODES = 24;
constexpr int WARMUP = 10;
constexpr int STEPS = 260;

__constant__ float4 modes[MODES];

struct Particles {
    float *x, *y, *z, *vx, *vy, *vz;
};

__global__ void seed(Particles p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    unsigned h = i * 2654435761u;
    float u[6];
    for (int k = 0; k < 6; k++) {
        h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
        u[k] = float(h & 0xffffff) / 16777216.0f;
    }
    p.x[i] = u[0]; p.y[i] = u[1]; p.z[i] = u[2];
    p.vx[i] = u[3] - 0.5f; p.vy[i] = u[4] - 0.5f; p.vz[i] = u[5] - 0.5f;
}

__global__ void push(Particles p, float time, float dt) {  // also
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float x = p.x[i], y = p.y[i], z = p.z[i];
    float ex = 0, ey = 0, ez = 0;
    for (int m = 0; m < MODES; m++) {
        float4 k = modes[m];
        float s, c;
        __sincosf(k.x * x + k.y * y + k.z * z - k.w * time, &s, &c);
        ex += s * k.x; ey += s * k.y; ez += c * k.z;
    }
    float vx = p.vx[i] + dt * 0.02f * ex, vy = p.vy[i] + dt * 0.02f * ey, vz = p.vz[i] + dt * 0.02f * ez;
    x += dt * vx; y += dt * vy; z += dt * vz;
    p.x[i] = x - floorf(x); p.y[i] = y - floorf(y); p.z[i] = z - floorf(z);
    p.vx[i] = vx; p.vy[i] = vy; p.vz[i] = vz;
}

__global__ void top_component(Particles p, int* top) {
    float best = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        best = fmaxf(best, fmaxf(fabsf(p.vx[i]), fmaxf(fabsf(p.vy[i]), fabsf(p.vz[i]))));
    for (int d = 16; d; d >>= 1) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, d));
    if ((threadIdx.x & 31) == 0) atomicMax(top, __float_as_int(best));
}

class Simulation {
public:
    Simulation() {
        CHECK(cudaMalloc(&top_, sizeof(int)));
        float** fields[] = {&p_.x, &p_.y, &p_.z, &p_.vx, &p_.vy, &p_.vz};
        for (float** f : fields) CHECK(cudaMalloc(f, N * sizeof(float)));
        float4 host[MODES];
        for (int m = 0; m < MODES; m++)
            host[m] = make_float4(6.2831853f * (1 + m % 5), 6.2831853f * (m % 4), 6.2831853f * (m % 3), 0.5f + 0.1f * m);
        CHECK(cudaMemcpyToSymbol(modes, host, sizeof host));
        seed<<<(N + 255) / 256, 256>>>(p_);
        CHECK(cudaGetLastError());
    }

    float max_speed() {
        CHECK(cudaMemsetAsync(top_, 0, sizeof(int)));
        top_component<<<1056, 256>>>(p_, top_);
        CHECK(cudaGetLastError());
        float top;
        CHECK(cudaMemcpy(&top, top_, sizeof top, cudaMemcpyDeviceToHost));  // answer
        return top;
    }

    void step() {
        float dt = std::fmin(0.01f, 0.004f / max_speed());
        push<<<(N + 255) / 256, 256>>>(p_, time_, dt);
        CHECK(cudaGetLastError());
        time_ += dt;
    }

    float time() const { return time_; }

private:
    Particles p_{};
    int* top_ = nullptr;
    float time_ = 0;
};

int main() {
    Simulation sim;
    for (int i = 0; i < WARMUP; i++) sim.step();
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < STEPS; i++) sim.step();
    CHECK(cudaDeviceSynchronize());
    std::printf("%d steps, t=%.6f, top speed %.6f\n", WARMUP + STEPS, sim.time(), sim.max_speed());
}
