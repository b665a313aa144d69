"""Batched generation with a grouped-query decoder and a long cached prompt."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
DIM, HEADS, KV_HEADS, HEAD_DIM = 8192, 64, 8, 128
LAYERS, BATCH, PROMPT, NEW = 8, 16, 8000, 30


def repeat_kv(x, n):
    b, h, s, d = x.shape
    return x[:, :, None].expand(b, h, n, s, d).reshape(b, h * n, s, d)  # answer


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(DIM, HEADS * HEAD_DIM, bias=False)
        self.kv = nn.Linear(DIM, 2 * KV_HEADS * HEAD_DIM, bias=False)
        self.o = nn.Linear(HEADS * HEAD_DIM, DIM, bias=False)
        shape = (BATCH, KV_HEADS, PROMPT + NEW, HEAD_DIM)
        self.register_buffer("k_cache", torch.randn(shape, device=device))
        self.register_buffer("v_cache", torch.randn_like(self.k_cache))

    def forward(self, x, pos):
        b = x.shape[0]
        q = self.q(x).view(b, 1, HEADS, HEAD_DIM).transpose(1, 2)
        k, v = self.kv(x).view(b, 2 * KV_HEADS, HEAD_DIM).chunk(2, dim=1)
        self.k_cache[:, :, pos] = k
        self.v_cache[:, :, pos] = v
        keys = repeat_kv(self.k_cache[:, :, :pos + 1], HEADS // KV_HEADS)  # answer
        values = repeat_kv(self.v_cache[:, :, :pos + 1], HEADS // KV_HEADS)  # answer
        out = F.scaled_dot_product_attention(q, keys, values)  # answer
        return self.o(out.transpose(1, 2).reshape(b, 1, DIM))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    layers = nn.ModuleList()
    for _ in range(LAYERS):
        layers.append(Attention().to(device, torch.bfloat16))
    norm = nn.RMSNorm(DIM).to(device, torch.bfloat16)
    x = torch.randn(BATCH, 1, DIM, device=device, dtype=torch.bfloat16)
    start = time.time()
    for pos in range(PROMPT, PROMPT + NEW):
        for layer in layers:
            x = x + layer(norm(x), pos)
        x = norm(x)
    print("checksum", x.float().mean().item())
    print("tokens/s", BATCH * NEW / (time.time() - start))


if __name__ == "__main__":
    main()
