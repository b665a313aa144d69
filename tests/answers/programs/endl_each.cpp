// A line is written and flushed for each number.
#include <fstream>

void report(const char* name, int count) {  // also
    std::ofstream out(name);
    for (int i = 0; i < count; i++) {
        out << "value " << i * 0.5 << std::endl;  // answer
    }
}

int main() { report("/dev/shm/endl_each.txt", 1500000); }
