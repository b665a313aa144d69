#include <cstdio>
#include <memory>
#include <vector>
struct Particle { double x, y; };
static double step(int count) {
    std::vector<std::unique_ptr<Particle>> particles;
    for (int i = 0; i < count; i++) particles.push_back(std::make_unique<Particle>(Particle{i * 0.5, i * 0.25})); // answer
    double sum = 0;
    for (auto &p : particles) sum += p->x * p->y;
    return sum;
}
int main() {
    double sum = 0;
    for (int k = 0; k < 300; k++) sum += step(60000);
    std::printf("%g\n", sum);
}
