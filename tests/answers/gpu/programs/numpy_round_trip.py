"""Each step takes the scores to numpy to smooth them, and brings them back."""

import numpy as np
import torch


def smooth(scores):
    values = scores.cpu().numpy()  # also
    kernel = np.ones(9) / 9
    smoothed = np.stack([np.convolve(row, kernel, mode="same") for row in values])  # answer
    return torch.from_numpy(smoothed.astype(np.float32)).cuda()  # also


def main():
    x, weights = torch.randn(4096, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    for _ in range(60):
        x = torch.tanh(smooth(x @ weights))  # also
    print(x.sum().item())


main()
