"""Gray-Scott reaction and diffusion on a periodic plane."""
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
SIDE, STEPS = 6144, 1500
SPREAD_U, SPREAD_V, FEED, KILL = 0.16, 0.08, 0.035, 0.065


def laplacian(z):
    north, south = torch.roll(z, 1, dims=0), torch.roll(z, -1, dims=0)  # also
    west, east = torch.roll(z, 1, dims=1), torch.roll(z, -1, dims=1)  # also
    return north + south + west + east - 4 * z  # answer


class GrayScott:
    def __init__(self, side):
        self.u = torch.ones(side, side, device=device)
        self.v = torch.zeros(side, side, device=device)
        middle = slice(side // 2 - side // 16, side // 2 + side // 16)
        self.u[middle, middle] = 0.5
        self.v[middle, middle] = 0.25
        self.v += 0.02 * torch.rand_like(self.v)

    def step(self):
        du, dv = laplacian(self.u), laplacian(self.v)  # also
        reaction = self.u * self.v * self.v  # also
        self.u += SPREAD_U * du - reaction + FEED * (1 - self.u)  # also
        self.v += SPREAD_V * dv + reaction - (FEED + KILL) * self.v  # also


@torch.no_grad()
def main():
    torch.manual_seed(0)
    plane = GrayScott(SIDE)
    start = time.time()
    for step in range(STEPS):
        plane.step()  # also
        if (step + 1) % 500 == 0:
            print("step", step + 1, "mean v %.5f" % plane.v.mean().item())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
