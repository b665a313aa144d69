"""A compiled function gets a batch of another length each time."""

import torch
from torch import nn


def main():
    torch._dynamo.config.recompile_limit = 64
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
    fast = torch.compile(net, dynamic=False)
    total = 0.0
    with torch.no_grad():
        for length in range(100, 106):
            rows = torch.randn(length, 256, device="cuda")
            for _ in range(60):
                total += fast(rows).sum()  # answer
    print(total.item())


main()
