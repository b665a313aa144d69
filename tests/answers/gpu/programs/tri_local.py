"""Causal attention over a local window for long documents, as one Triton kernel."""
import time

import torch
import triton
import triton.language as tl

HEADS, LENGTH, DIM, WINDOW, LAYERS = 64, 16384, 64, 512, 130
BM, BN = 128, 64


@triton.jit
def local_attention(Q, K, V, O, T, scale, WINDOW: tl.constexpr, D: tl.constexpr,
                    BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * T * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, D)
    q = tl.load(Q + head + rows[:, None] * D + cols[None, :])
    top = tl.full((BM,), -1.0e30, tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):  # answer
        keys = start + tl.arange(0, BN)
        k = tl.load(K + head + keys[None, :] * D + cols[:, None])
        s = tl.dot(q, k) * scale
        back = rows[:, None] - keys[None, :]
        s = tl.where((back >= 0) & (back < WINDOW), s, -1.0e30)  # answer
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        norm = norm * shrink + tl.sum(p, 1)
        v = tl.load(V + head + keys[:, None] * D + cols[None, :])
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    acc = acc / norm[:, None]
    tl.store(O + head + rows[:, None] * D + cols[None, :], acc.to(q.dtype))


def attend(q, k, v, out):
    grid = (LENGTH // BM, HEADS)
    scale = DIM ** -0.5 * 1.44269504
    local_attention[grid](q, k, v, out, LENGTH, scale, WINDOW, DIM, BM, BN, num_warps=4, num_stages=3)
    return out


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    q, k, v, out = (torch.randn(HEADS, LENGTH, DIM, device=device).half() for _ in range(4))
    start = time.time()
    for layer in range(LAYERS):
        attend(q, k, v, out)
        v, out = out, v
    print("mean square %.6f" % v.float().pow(2).mean().item(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
