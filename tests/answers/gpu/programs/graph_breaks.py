"""A compiled function that is left for Python after each layer."""

import torch

SEEN = []


@torch.compile  # also
def layers(x, weights):
    for weight in weights:
        x = torch.tanh(x * weight + 0.5)
        SEEN.append(x.mean().item())  # answer
    return x


def main():
    x = torch.randn(64, 64, device="cuda")
    weights = [torch.randn(64, device="cuda") for _ in range(6)]
    for _ in range(600):
        out = layers(x, weights)  # also
        SEEN.clear()
    torch.cuda.synchronize()
    print(out.sum().item())


main()
