"""Trains a small residual network on images in half precision."""

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.second(F.relu(self.first(x)))  # answer


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 128, 7, stride=2, padding=3)  # also
        self.blocks = nn.Sequential(*(Residual(128) for _ in range(8)))  # also
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        x = self.blocks(self.stem(x))  # also
        return self.head(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    model = Network().cuda().half()  # also
    images = torch.rand(32, 3, 256, 256, device="cuda").half()  # also
    labels = torch.randint(10, (32,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    total = torch.zeros((), device="cuda")
    for _ in range(150):
        loss = F.cross_entropy(model(images).float(), labels)  # also
        optimizer.zero_grad()
        loss.backward()  # also
        optimizer.step()
        total += loss.detach()
    print(total.item())


main()
