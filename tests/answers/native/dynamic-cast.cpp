// Adds up the areas of shapes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const { return 0; }
};
struct Round : Shape {
    double r = 1;
};
struct Disc : Round {
    double area() const override { return 3.14 * r * r; }
};
struct Box : Shape {
    double a = 2, b = 3;
    double area() const override { return a * b; }
};

static double area(const Shape* one) {
#ifdef FIXED
    return one->area();
#else
    if (auto disc = dynamic_cast<const Disc*>(one)) return 3.14 * disc->r * disc->r;
    if (auto box = dynamic_cast<const Box*>(one)) return box->a * box->b;
    return 0;
#endif
}

int main(int, char** words) {
    const int rounds = int(100'000 * std::atof(words[1]));
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int n = 0; n < 1000; n++) {
        if (n % 3) {
            shapes.push_back(std::make_unique<Box>());
        } else {
            shapes.push_back(std::make_unique<Disc>());
        }
    }
    double sum = 0;
    for (int n = 0; n < rounds; n++)
        for (auto& shape : shapes) sum += area(shape.get());
    std::printf("%.0f\n", sum);
}
