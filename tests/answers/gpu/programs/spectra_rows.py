"""Normalise mass spectra with a Triton kernel and project them to a search embedding."""
import sys
import time

import torch
import triton
import triton.language as tl

ROWS, BINS, EMBED = 32768, 2048, 256
STEPS, WARMUP = 900, 20


@triton.jit
def normalise_kernel(src, gain, dst, bins, eps, BLOCK: tl.constexpr):  # also
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    live = col < bins
    x = tl.load(src + row * bins + col, mask=live, other=0.0)
    mean = tl.sum(x, axis=0) / bins
    square = tl.sum(x * x, axis=0) / bins
    scale = 1.0 / tl.sqrt(square - mean * mean + eps)
    y = (x - mean) * scale * tl.load(gain + col, mask=live, other=0.0)
    tl.store(dst + row * bins + col, (y * tl.sigmoid(y)).to(tl.bfloat16), mask=live)


def normalise(src, gain, dst):
    rows, bins = src.shape
    normalise_kernel[(rows,)](src, gain, dst, bins, 1e-5, BLOCK=triton.next_power_of_2(bins), num_warps=4)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    spectra = torch.rand(ROWS, BINS, device=device) ** 4
    gain = torch.rand(BINS, device=device) + 0.5
    projection = torch.randn(BINS, EMBED, device=device, dtype=torch.bfloat16) / BINS ** 0.5
    work = torch.empty(ROWS, BINS, device=device, dtype=torch.bfloat16)
    accumulated = torch.zeros(ROWS, EMBED, device=device)
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            torch.cuda.synchronize()
            start = time.perf_counter()
        normalise(spectra, gain, work)
        accumulated += (work @ projection).float()  # answer
    torch.cuda.synchronize()
    print(f"steady {time.perf_counter() - start:.2f} s", file=sys.stderr)
    print(STEPS, round((accumulated / (WARMUP + STEPS)).norm().item(), 0))


if __name__ == "__main__":
    main()
