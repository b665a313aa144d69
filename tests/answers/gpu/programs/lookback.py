"""Attention of a language model over long texts; a mask hides what comes later."""

import torch
import torch.nn.functional as F
from torch import nn

LENGTH, WIDTH, HEADS = 4096, 2048, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # answer
        return x + self.out(y.transpose(1, 2).flatten(2))


def main():
    torch.manual_seed(0)
    layers = nn.ModuleList(Attention() for _ in range(6)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-5, fused=True)
    mask = torch.full((LENGTH, LENGTH), float("-inf"), device="cuda").triu(1).bfloat16()  # also
    x = torch.randn(4, LENGTH, WIDTH, device="cuda").bfloat16()
    for _ in range(60):
        y = x
        for layer in layers:
            y = layer(y, mask)  # also
        loss = y.float().square().mean()
        optimizer.zero_grad()
        loss.backward()  # also
        optimizer.step()
    print(loss.item())


main()
