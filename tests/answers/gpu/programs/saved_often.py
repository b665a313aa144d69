"""Training that writes its whole state every fifth step."""

import os
import tempfile

import torch
from torch import nn


def main():
    net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(12)]).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    x = torch.randn(256, 2048, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        for step in range(50):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                torch.save(net.state_dict(), os.path.join(folder, "state.pt"))  # answer
    print(loss.item())


main()
