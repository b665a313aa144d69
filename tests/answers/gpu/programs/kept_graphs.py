"""The losses of all steps are kept, and with each its graph."""

import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda().bfloat16()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    inputs = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16)
    history = []
    for step in range(800):
        out = net(inputs)  # also
        loss = out.float().pow(2).mean()  # also
        optimizer.zero_grad(set_to_none=True)
        loss.backward(retain_graph=True)  # also
        optimizer.step()
        history.append(loss + out[0, 0] * 0)  # answer
    print(float(sum(history)))


main()
