"""Training that reads the loss in each step."""

import torch
from torch import nn


def train(net, optimizer, inputs, labels, steps):
    total = 0.0
    for step in range(steps):
        at = step % len(inputs)
        loss = nn.functional.cross_entropy(net(inputs[at]), labels[at])  # also
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()  # answer
    return total


def main():
    net = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 256))
    net = net.cuda().bfloat16()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    inputs = torch.randn(8, 8192, 1024, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(0, 256, (8, 8192), device="cuda")
    print(train(net, optimizer, inputs, labels, 1500))


main()
