"""Two ranks train; rank 0 draws its batch number by number while the other waits."""

import os
import random

import torch
import torch.distributed as dist
from torch import nn


def batch(rank):
    if rank == 0:
        values = [random.gauss(0.0, 1.0) for _ in range(64 * 512)]  # answer
        return torch.tensor(values, device="cuda").reshape(64, 512)
    return torch.randn(64, 512, device="cuda")


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    net = nn.parallel.DistributedDataParallel(nn.Linear(512, 512).cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(150):
        loss = net(batch(rank)).square().mean()  # also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
    dist.destroy_process_group()


main()
