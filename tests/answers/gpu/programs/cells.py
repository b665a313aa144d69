"""A recurrent net as a loop over cells, 200 time steps of small kernels."""

import torch
from torch import nn


def read(cell, inputs, hidden):
    state = hidden, hidden
    for row in inputs:
        state = cell(row, state)  # answer
    return state[0]


def main():
    cell, inputs = nn.LSTMCell(128, 256).cuda(), torch.randn(200, 32, 128, device="cuda")
    hidden = torch.zeros(32, 256, device="cuda")
    with torch.no_grad():
        for _ in range(150):
            out = read(cell, inputs, hidden)  # also
    print(out.sum().item())


main()
