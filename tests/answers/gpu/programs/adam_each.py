"""An optimizer that launches kernels for each of many small parameters."""

import torch
from torch import nn


def main():
    net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(60))).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False)
    x = torch.randn(256, 64, device="cuda")
    for _ in range(150):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # answer
    print(loss.item())


main()
