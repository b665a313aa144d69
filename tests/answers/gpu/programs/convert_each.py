"""FP32 weights are converted in each step for one small product."""

import torch


def main():
    weight = torch.randn(8192, 8192, device="cuda")
    x = torch.randn(64, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(1500):
        y = x @ weight.to(torch.bfloat16)  # answer
    torch.cuda.synchronize()
    print(y.float().sum().item())


main()
