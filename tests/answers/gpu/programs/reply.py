"""Generate replies for a batch of prompts with a small decoder-only model."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16
VOCAB, WIDTH, HEADS, LAYERS = 16000, 2048, 16, 8
BATCH, PROMPT, NEW, ROUNDS = 32, 1024, 1000, 2


class Past:
    def __init__(self):
        self.keys = [None] * LAYERS
        self.values = [None] * LAYERS

    def extend(self, layer, k, v):  # also
        if self.keys[layer] is not None:
            k = torch.cat([self.keys[layer], k], dim=2)  # answer
            v = torch.cat([self.values[layer], v], dim=2)  # also
        self.keys[layer], self.values[layer] = k, v  # also
        return k, v


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        k, v = past.extend(self.index, k, v)  # also
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block(i) for i in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens, past):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, past)
        return self.head(x[:, -1])


@torch.inference_mode()
def generate(model, prompt):
    past, token, reply = Past(), prompt, []
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        for _ in range(NEW):
            token = model(token, past).argmax(dim=-1, keepdim=True)
            reply.append(token)
    return torch.cat(reply, dim=1)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Decoder().to(device, dtype).eval()
    start = time.time()
    for _ in range(ROUNDS):
        reply = generate(model, torch.randint(0, VOCAB, (BATCH, PROMPT), device=device))
        print("checksum", int(reply.sum()), "seconds", time.time() - start)
