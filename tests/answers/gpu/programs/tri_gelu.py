"""Fused bias + GELU over packed documents of different lengths."""
import random
import time

import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
HIDDEN = 1024
BATCHES = 7

CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps)
    for block in (512, 1024, 2048) for warps in (4, 8)
]


@triton.autotune(configs=CONFIGS, key=["n_elements"])  # answer
@triton.jit
def bias_gelu_kernel(x_ptr, bias_ptr, out_ptr, n_elements, hidden, BLOCK: tl.constexpr):  # also
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    x += tl.load(bias_ptr + offs % hidden, mask=mask).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.70710678))
    tl.store(out_ptr + offs, y.to(tl.float16), mask=mask)


def bias_gelu(x, bias):
    out = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    bias_gelu_kernel[grid](x, bias, out, n, x.shape[1])  # answer
    return out


def main():
    random.seed(0)
    torch.manual_seed(0)
    weight = torch.randn(HIDDEN, HIDDEN, device=device, dtype=torch.float16) / 32
    bias = torch.randn(HIDDEN, device=device, dtype=torch.float16)
    start = time.time()
    for batch in range(BATCHES):
        tokens = random.randint(4000, 9000)
        x = torch.randn(tokens, HIDDEN, device=device, dtype=torch.float16)
        for _ in range(24):
            x = bias_gelu(x @ weight, bias)  # answer
        print(batch, tokens, x.float().mean().item())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
