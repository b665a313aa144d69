"""Thin lidar sweeps: average all points that fall in the same voxel."""
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
POINTS, SWEEPS = 4_000_000, 300
LOW = (-50.0, -50.0, -3.0)
SPAN = (100.0, 100.0, 6.0)
CELL = (0.4, 0.4, 0.2)


class VoxelFilter:
    def __init__(self):
        self.low = torch.tensor(LOW, device=device)
        self.cell = torch.tensor(CELL, device=device)

    def assign(self, xyz):
        return torch.floor((xyz - self.low) / self.cell).to(torch.int64)  # also

    def __call__(self, cloud):
        voxel = self.assign(cloud[:, :3])  # also
        cells, owner, count = torch.unique(voxel, dim=0, return_inverse=True, return_counts=True)  # answer
        total = torch.zeros(cells.shape[0], cloud.shape[1], device=cloud.device)
        total.index_add_(0, owner, cloud)
        return cells, total / count[:, None]


def sweep(generator, span, low):
    cloud = torch.rand(POINTS, 4, device=device, generator=generator)
    cloud[:, :3] = cloud[:, :3] * span + low
    return cloud


def main():
    generator = torch.Generator(device=device).manual_seed(0)
    thin = VoxelFilter()
    span, low = torch.tensor(SPAN, device=device), torch.tensor(LOW, device=device)
    kept = 0
    brightness = torch.zeros((), device=device)
    start = time.time()
    for _ in range(SWEEPS):
        cells, mean = thin(sweep(generator, span, low))  # also
        kept += cells.shape[0]
        brightness += mean[:, 3].mean()
    print("kept %d, brightness %.4f" % (kept, brightness.item() / SWEEPS), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
