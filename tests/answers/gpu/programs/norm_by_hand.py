"""A layer norm and a GELU written out, each operation a kernel of its own."""

import torch


def norm(x, scale, shift):
    mean = x.mean(-1, keepdim=True)  # also
    centred = x - mean  # also
    variance = centred.pow(2).mean(-1, keepdim=True)  # also
    return centred * torch.rsqrt(variance + 1e-5) * scale + shift  # answer


def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))  # also


def main():
    x = torch.randn(16384, 4096, device="cuda")
    scale, shift = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")
    for _ in range(150):
        out = gelu(norm(x, scale, shift))  # also
    torch.cuda.synchronize()
    print(out.sum().item())


main()
