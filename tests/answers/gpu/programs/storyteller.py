"""Writes texts token by token with a small transformer; each token is chosen from the whole text so far."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 1024, 16, 8, 32000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)  # also
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))  # also
        return x + self.narrow(F.gelu(self.wide(self.second(x))))  # also


class Teller(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, text):
        return self.head(self.blocks(self.words(text))[:, -1])  # also


@torch.no_grad()
def tell(model, text, count):
    for _ in range(count):
        logits = model(text)  # answer
        text = torch.cat([text, logits.argmax(dim=-1, keepdim=True)], dim=1)  # also
    return text


def main():
    torch.manual_seed(0)
    model = Teller().cuda().bfloat16().eval()
    text = torch.randint(VOCABULARY, (16, 1024), device="cuda")
    print(tell(model, text, 240).float().mean().item())


main()
