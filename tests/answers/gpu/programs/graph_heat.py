"""Heat diffusion over a dense similarity graph, implicit Euler in time."""
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
NODES = 8192
CHANNELS = 16
STEPS = 60
DT = 0.05


def build_laplacian(points, width):
    dist2 = torch.cdist(points, points).square()
    weights = torch.exp(-dist2 / (2 * width * width))
    weights.fill_diagonal_(0)
    degree = weights.sum(dim=1)
    return torch.diag(degree) - weights


def source(step, points):
    phase = 0.1 * step
    centre = torch.tensor([0.5, 0.5, phase % 1.0], device=device)
    near = (points - centre).square().sum(dim=1, keepdim=True)
    return torch.exp(-20 * near)


def simulate():
    torch.manual_seed(0)
    points = torch.rand(NODES, 3, device=device)
    system = build_laplacian(points, 0.05)
    system.mul_(DT)
    system.diagonal().add_(1.0)
    heat = torch.rand(NODES, CHANNELS, device=device)
    totals = []
    for step in range(STEPS):  # answer
        rhs = heat + DT * source(step, points)
        heat = torch.linalg.solve(system, rhs)  # answer
        totals.append(heat.sum())
    return heat, torch.stack(totals)


if __name__ == "__main__":
    begin = time.time()
    final, totals = simulate()
    print("final mean", final.mean().item())
    print("total heat", totals[0].item(), "->", totals[-1].item())
    print("seconds", time.time() - begin)
