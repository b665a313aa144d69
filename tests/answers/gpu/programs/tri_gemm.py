"""A small Triton GEMM used for a Gram-style product of activations."""
import time

import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
SIZE, REPEATS = 4096, 400


@triton.jit
def gemm_kernel(at_ptr, b_ptr, c_ptr, M, N, K,
                BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K):  # answer
        a = tl.load(at_ptr + k * M + rows).to(tl.float32)  # answer
        b = tl.load(b_ptr + k * N + cols).to(tl.float32)  # answer
        acc += a[:, None] * b[None, :]  # answer
    out = c_ptr + rows[:, None] * N + cols[None, :]
    tl.store(out, acc.to(tl.float16))


def gemm(at, b):
    k, m = at.shape
    n = b.shape[1]
    c = torch.empty(m, n, device=at.device, dtype=torch.float16)
    grid = (m // 64, n // 64)
    gemm_kernel[grid](at, b, c, m, n, k, BM=64, BN=64, num_warps=4)
    return c


def main():
    torch.manual_seed(0)
    at = torch.randn(SIZE, SIZE, device=device, dtype=torch.float16)
    b = torch.randn(SIZE, SIZE, device=device, dtype=torch.float16)
    c = gemm(at, b)
    want = at.T @ b
    print("max error", (c - want).abs().max().item())
    start = time.time()
    for _ in range(REPEATS):
        c = gemm(at, b)
    print("checksum", c.float().mean().item(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
