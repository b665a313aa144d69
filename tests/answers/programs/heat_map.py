"""Let heat spread over a plate that was read from a measurement file."""
import io
import random

import numpy as np


def measurement_text(rows, columns, seed=9):
    rng = random.Random(seed)
    out = io.StringIO()
    for _ in range(rows):
        cells = [f"{rng.uniform(15, 90):.2f}" for _ in range(columns)]
        if rng.random() < 0.1:
            cells[rng.randrange(columns)] = ""
        out.write(";".join(cells) + "\n")
    return out.getvalue()


def parse_cell(cell):
    return float(cell) if cell else None  # also


def read_plate(text):
    rows = [[parse_cell(c) for c in line.split(";")] for line in text.splitlines()]  # also
    plate = np.array(rows)  # also
    plate[plate == None] = 20.0  # noqa: E711
    return plate


class Diffusion:
    def __init__(self, plate, rate):
        self.plate = plate
        self.rate = rate

    def step(self):
        p = self.plate
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]  # also
        p[1:-1, 1:-1] += self.rate * (around - 4 * p[1:-1, 1:-1])  # answer

    def run(self, steps):
        for _ in range(steps):
            self.step()
        return self.plate


def main():
    plate = read_plate(measurement_text(300, 300))
    result = Diffusion(plate, 0.2).run(150)
    print("mean", round(float(result.mean()), 4), "peak", round(float(result.max()), 3))


if __name__ == "__main__":
    main()
