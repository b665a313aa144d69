"""Kernel ridge regression with random Fourier features, solved by conjugate gradients."""
import math
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
SAMPLES, INPUTS, FEATURES = 32768, 12, 512
OUTPUTS, ITERATIONS = 6, 50


class FourierKernel:
    def __init__(self, x, length, damping):
        frequency = torch.randn(x.shape[1], FEATURES, device=x.device) / length
        phase = 2 * math.pi * torch.rand(FEATURES, device=x.device)
        self.phi = math.sqrt(2 / FEATURES) * torch.cos(x @ frequency + phase)
        self.damping = damping

    def apply(self, v):
        return self.phi @ self.phi.T @ v + self.damping * v  # answer


def conjugate_gradients(operator, b, iterations):
    x = torch.zeros_like(b)
    r = b.clone()
    p = r.clone()
    rr = (r * r).sum()
    for _ in range(iterations):
        ap = operator.apply(p)  # also
        alpha = rr / (p * ap).sum().clamp_min(1e-20)
        x += alpha * p
        r -= alpha * ap
        new = (r * r).sum()
        p = r + (new / rr.clamp_min(1e-20)) * p
        rr = new
    return x, rr.sqrt() / b.norm()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    x = torch.rand(SAMPLES, INPUTS, device=device) * 2 - 1
    kernel = FourierKernel(x, length=2.0, damping=1e-2)
    start = time.time()
    for output in range(OUTPUTS):
        y = torch.sin(3 * x[:, output:output + 1]) + 0.05 * torch.randn(SAMPLES, 1, device=device)
        weights, residual = conjugate_gradients(kernel, y, ITERATIONS)  # also
        fitted = kernel.phi @ (kernel.phi.T @ weights)
        print("output", output, "residual %.2e" % residual.item(), "error %.4f" % (fitted - y).square().mean().item())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
