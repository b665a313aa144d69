"""Generate with a long context at batch one: attention of one new token over the cache of each layer."""
import time

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

LAYERS, KV_HEADS, GROUP, DIM = 16, 8, 16, 128
CONTEXT, TOKENS, BN = 131072, 160, 64


@triton.jit
def attend_one(Q, K, V, O, T, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(0)  # also
    group = tl.arange(0, G)
    cols = tl.arange(0, D)
    q = tl.load(Q + head * G * D + group[:, None] * D + cols[None, :])
    K += head.to(tl.int64) * T * D
    V += head.to(tl.int64) * T * D
    top = tl.full((G,), -1.0e30, tl.float32)
    norm = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for start in range(0, T, BN):  # also
        keys = start + tl.arange(0, BN)
        k = tl.load(K + keys[None, :] * D + cols[:, None])
        s = tl.dot(q, k) * scale
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        norm = norm * shrink + tl.sum(p, 1)
        v = tl.load(V + keys[:, None] * D + cols[None, :])
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    acc = acc / norm[:, None]
    tl.store(O + head * G * D + group[:, None] * D + cols[None, :], acc.to(q.dtype))


def attention(q, k, v):
    out = torch.empty_like(q)
    scale = DIM ** -0.5 * 1.44269504
    attend_one[(KV_HEADS,)](q, k, v, out, k.shape[1], scale, GROUP, DIM, BN, num_warps=4, num_stages=3)  # answer
    return out


@torch.inference_mode()
def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    shape = (LAYERS, KV_HEADS, CONTEXT, DIM)
    k_cache = torch.randn(shape, device=device, dtype=torch.float16)
    v_cache = torch.randn(shape, device=device, dtype=torch.float16)
    q = torch.randn(KV_HEADS, GROUP, DIM, device=device, dtype=torch.float16)
    start = time.time()
    for token in range(TOKENS):
        position = CONTEXT - TOKENS + token
        for layer in range(LAYERS):
            k_cache[layer, :, position] = q[:, 0]
            v_cache[layer, :, position] = q[:, 1]
            q = F.rms_norm(q + attention(q, k_cache[layer], v_cache[layer]), (DIM,))
    print("mean %.5f" % q.float().mean().item(), "tokens/s %.1f" % (TOKENS / (time.time() - start)))


if __name__ == "__main__":
    main()
