"""Train a transformer that forecasts grid load from a week of quarter-hour readings."""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

STEPS, WARMUP = 160, 10
BATCH, LENGTH, WIDTH, LAYERS, HEADS, WINDOW = 16, 1024, 512, 8, 8, 256


def local_window(length, window):
    mask = torch.full((length, length), float("-inf"))  # also
    position = torch.arange(length)
    distance = position[:, None] - position[None, :]  # also
    mask[(distance >= 0) & (distance < window)] = 0.0  # answer
    return mask


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mask = local_window(t, WINDOW).to(device=x.device, dtype=q.dtype)  # answer
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.n2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Forecaster().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    series = torch.randn(64, LENGTH, 8, device=device).cumsum(1) / 16
    target = series.mean(2, keepdim=True).roll(-1, 1)
    losses = []
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            torch.cuda.synchronize()
            start = time.perf_counter()
        at = step * BATCH % 64
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(series[at:at + BATCH]).float(), target[at:at + BATCH])
        opt.zero_grad(set_to_none=True)
        loss.backward()  # also
        opt.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    print(f"steady {time.perf_counter() - start:.2f} s", file=sys.stderr)
    print(len(losses), round(torch.stack(losses[-20:]).mean().item(), 1))


if __name__ == "__main__":
    main()
