"""Normalise mass spectra with a Triton kernel and project them to a search embedding."""
import sys
import time

import torch
import triton
import triton.language as tl

ROWS, BINS, EMBED = 32768, 2048, 256
STEPS, WARMUP = 900, 20


@triton.jit
def normalise_kernel(src, gain, dst, rows, bins, eps, BLOCK: tl.constexpr):  # also
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = row < rows
    base = row.to(tl.int64) * bins
    total = tl.zeros([BLOCK], dtype=tl.float32)
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for b in range(0, bins):
        x = tl.load(src + base + b, mask=live, other=0.0)
        total += x  # answer
        square += x * x
    mean = total / bins
    scale = 1.0 / tl.sqrt(square / bins - mean * mean + eps)
    for b in range(0, bins):  # answer
        x = tl.load(src + base + b, mask=live, other=0.0)
        y = (x - mean) * scale * tl.load(gain + b)
        tl.store(dst + base + b, (y * tl.sigmoid(y)).to(tl.bfloat16), mask=live)  # answer


def normalise(src, gain, dst):
    rows, bins = src.shape
    BLOCK = 128
    normalise_kernel[(triton.cdiv(rows, BLOCK),)](src, gain, dst, rows, bins, 1e-5, BLOCK=BLOCK, num_warps=4)


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
        accumulated += (work @ projection).float()
    torch.cuda.synchronize()
    print(f"steady {time.perf_counter() - start:.2f} s", file=sys.stderr)
    print(STEPS, round((accumulated / (WARMUP + STEPS)).norm().item(), 0))


if __name__ == "__main__":
    main()
