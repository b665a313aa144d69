"""Language model over chord symbols, with a monitor of the health of every parameter."""
import time
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
SYMBOLS, WIDTH, LAYERS, LENGTH, BATCH = 600, 256, 24, 128, 16
STEPS = 40


class Monitor:
    def __init__(self, model):
        self.parameters = list(model.named_parameters())
        self.history = defaultdict(list)

    def record(self):
        for name, p in self.parameters:  # also
            g, w = p.grad, p.detach()  # also
            self.history[name].append({  # also
                "grad_norm": g.norm().item(),  # also
                "grad_max": g.abs().max().item(),  # also
                "weight_norm": w.norm().item(),  # also
                "dead": (g == 0).float().mean().item(),  # answer
            })

    def worst(self):
        last = {name: rows[-1]["grad_norm"] / (rows[-1]["weight_norm"] + 1e-8) for name, rows in self.history.items()}
        return max(last, key=last.get)


class ChordModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, SYMBOLS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens), mask=self.mask, is_causal=True))  # also


def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = ChordModel().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    songs = torch.randint(0, SYMBOLS, (64, BATCH, LENGTH + 1), device=device)
    monitor = Monitor(model)
    start = time.time()
    for step in range(STEPS):
        batch = songs[step % len(songs)]
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        monitor.record()  # also
        opt.step()
    print("loss %.3f" % loss.item(), "worst", monitor.worst(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
