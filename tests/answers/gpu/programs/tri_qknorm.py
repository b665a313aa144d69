"""Backward of the per-head RMS norm on queries and keys, written as one Triton kernel."""
import time

import torch
import triton
import triton.language as tl

TOKENS, HEADS, DIM, STEPS = 16384, 32, 128, 1000
ROWS = 32


@triton.jit
def rms_backward(X, DY, W, DX, DW, eps, D: tl.constexpr, ROWS: tl.constexpr):
    cols = tl.arange(0, D)
    w = tl.load(W + cols)
    first = tl.program_id(0) * ROWS
    for row in range(first, first + ROWS):  # also
        x = tl.load(X + row * D + cols).to(tl.float32)
        dy = tl.load(DY + row * D + cols).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, 0) / D + eps)
        xhat = x * rstd
        g = dy * w
        dx = rstd * (g - xhat * (tl.sum(g * xhat, 0) / D))
        tl.store(DX + row * D + cols, dx.to(tl.bfloat16))
        tl.atomic_add(DW + cols, dy * xhat)  # answer


def backward(x, dy, weight, dx, dw):
    dw.zero_()
    rows = x.numel() // DIM
    rms_backward[(rows // ROWS,)](x, dy, weight, dx, dw, 1e-6, DIM, ROWS, num_warps=1)  # also
    return dx, dw


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    shape = (TOKENS, HEADS, DIM)
    query, key, d_query, d_key = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(4))
    weights = torch.ones(2, DIM, device=device)
    dx = torch.empty(shape, device=device, dtype=torch.bfloat16)
    dw = torch.empty(2, DIM, device=device)
    start = time.time()
    for step in range(STEPS):
        backward(query, d_query, weights[0], dx, dw[0])
        backward(key, d_key, weights[1], dx, dw[1])
        weights.add_(dw, alpha=-1e-8)
    print("weights %.6f %.6f" % tuple(weights.mean(1).tolist()), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
