"""Softmax over long rows, forward and backward: the library's kernels, which DRAM limits."""

import torch


def main():
    x = torch.randn(8192, 16384, device="cuda", requires_grad=True)
    weight = torch.randn(8192, 16384, device="cuda")
    for _ in range(150):
        out = torch.softmax(x, dim=1)  # answer
        out.backward(weight)  # also
        x.grad = None
    torch.cuda.synchronize()
    print(out.sum().item())


main()
