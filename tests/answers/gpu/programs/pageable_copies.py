"""Batches lie in pageable memory and are copied when they are needed."""

import torch
from torch import nn


def main():
    torch.set_float32_matmul_precision("high")
    net = nn.Linear(4096, 512).cuda()
    batches = [torch.randn(8192, 4096) for _ in range(6)]
    total = torch.zeros((), device="cuda")
    with torch.no_grad():
        for step in range(60):
            batch = batches[step % 6].to("cuda")  # answer
            total += net(batch).sum()
    print(total.item())


main()
