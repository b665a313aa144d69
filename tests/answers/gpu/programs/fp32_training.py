"""Training in FP32; all sizes are multiples of 64."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(1024, 4096)
        self.down = nn.Linear(4096, 1024)

    def forward(self, x):
        hidden = torch.relu(self.up(x))  # answer
        return x + self.down(hidden)  # also


def main():
    net = nn.Sequential(*(Net() for _ in range(4))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(8192, 1024, device="cuda")
    for _ in range(40):
        loss = net(x).square().mean()  # also
        optimizer.zero_grad()
        loss.backward()  # also
        optimizer.step()
    print(loss.item())


main()
