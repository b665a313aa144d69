"""Samples are made in Python, in the process that trains."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Events(Dataset):
    def __len__(self):
        return 4800

    def __getitem__(self, index):
        values = [0.0] * 512
        state = index + 1
        for i in range(512):  # also
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF  # answer
            values[i] = (state >> 8) / 8388608.0 - 0.5  # also
        return torch.tensor(values), index % 10  # also


def main():
    net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for inputs, labels in DataLoader(Events(), batch_size=32):  # also
        loss = nn.functional.cross_entropy(net(inputs.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
