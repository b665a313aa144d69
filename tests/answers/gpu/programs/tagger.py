"""Train a small transformer tagger on synthetic token sequences."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)  # answer
torch.set_float32_matmul_precision("high")

device = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB, TAGS, DIM, LAYERS = 8192, 32, 256, 8
BATCH, SEQ, STEPS = 32, 128, 20


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(0.02 * torch.randn(SEQ, DIM))
        layer = nn.TransformerEncoderLayer(
            DIM, nhead=8, dim_feedforward=4 * DIM, dropout=0.1,
            batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, TAGS)

    def forward(self, tokens):
        x = self.embed(tokens) + self.pos
        return self.head(self.encoder(x))


def main():
    model = Tagger().to(device).train()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    tokens = torch.randint(VOCAB, (STEPS, BATCH, SEQ), device=device)
    tags = tokens % TAGS
    running = torch.zeros((), device=device)
    start = time.time()
    for step in range(STEPS):
        opt.zero_grad()
        logits = model(tokens[step])
        loss = F.cross_entropy(logits.flatten(0, 1), tags[step].flatten())
        loss.backward()  # answer
        opt.step()
        running += loss.detach()
    print("mean loss", running.item() / STEPS)
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
