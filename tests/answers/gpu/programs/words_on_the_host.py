"""Each step splits its text and counts its words in Python before the GPU gets a row."""

import torch
from torch import nn

VOCABULARY = 4096


def counted(text):
    counts = [0] * VOCABULARY
    for word in text.split():
        value = 7
        for letter in word:
            value = (value * 31 + ord(letter)) % VOCABULARY  # answer
        counts[value] += 1
    return counts


def main():
    net = nn.Sequential(nn.Linear(VOCABULARY, 1024), nn.ReLU(), nn.Linear(1024, 16)).cuda()
    texts = [" ".join(f"word{i * j % 997}" for j in range(4000)) for i in range(1, 17)]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(200):
        rows = torch.tensor([counted(texts[step % 16]) for _ in range(4)], dtype=torch.float32, device="cuda")  # also
        loss = net(rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
