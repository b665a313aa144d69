// Turns angles, and keeps them within a circle.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void turn(std::vector<double>& angles, double by) {
    for (double& angle : angles) {
        angle += by;
#ifdef FIXED
        if (angle >= 360.0) angle -= 360.0;
#else
        angle = std::fmod(angle, 360.0);
#endif
    }
}

int main(int, char** words) {
    const int rounds = int(40'000 * std::atof(words[1]));
    std::vector<double> angles(10'000);
    for (std::size_t n = 0; n < angles.size(); n++) angles[n] = double(n % 360);
    for (int n = 0; n < rounds; n++) turn(angles, 1.25);
    std::printf("%.3f\n", angles[17]);
}
