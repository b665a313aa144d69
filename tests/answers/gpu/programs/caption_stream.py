"""Score live caption streams: log-probability of every incoming token under a language model."""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

STREAMS, LENGTH, WARMUP = 16, 640, 32
WIDTH, LAYERS, HEADS, VOCAB = 1024, 12, 16, 8192


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)  # also
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # also
        return self.out(y.transpose(1, 2).reshape(b, t, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))  # also


class CaptionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, -1]))


class StreamScorer:
    """Consumes one token per stream and step, as the captions arrive."""

    def __init__(self, model, device):
        self.model = model
        self.history = torch.empty(STREAMS, 0, dtype=torch.long, device=device)
        self.total = torch.zeros(STREAMS, device=device)
        self.expected = None

    def push(self, token):
        if self.expected is not None:
            self.total += self.expected.gather(1, token[:, None])[:, 0]
        self.history = torch.cat([self.history, token[:, None]], dim=1)
        self.expected = self.model(self.history).float().log_softmax(dim=1)  # answer


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    model = CaptionModel().to(device).eval()
    captions = torch.randint(0, VOCAB, (LENGTH, STREAMS), device=device)
    warm = StreamScorer(model, device)
    for token in captions[:WARMUP]:
        warm.push(token)
    torch.cuda.synchronize()
    start = time.perf_counter()
    scorer = StreamScorer(model, device)
    for token in captions:
        scorer.push(token)  # also
    torch.cuda.synchronize()
    print(f"steady {time.perf_counter() - start:.2f} s", file=sys.stderr)
    print(LENGTH, round(scorer.total.mean().item() / (LENGTH - 1), 2))


if __name__ == "__main__":
    main()
