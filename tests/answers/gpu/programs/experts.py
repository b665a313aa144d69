"""A small mixture-of-experts network on token vectors."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, HIDDEN, EXPERTS, LAYERS, TOKENS = 512, 1024, 32, 4, 4096
STEPS = 25


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class MixtureLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, x):
        h = self.norm(x)
        weight, choice = self.router(h).softmax(dim=-1).topk(2, dim=-1)
        out = torch.zeros_like(h)
        for number, expert in enumerate(self.experts):  # also
            mine = choice == number  # also
            rows = mine.any(dim=-1)  # also
            out[rows] += expert(h[rows]) * weight[mine][:, None]  # answer
        return x + out


def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = nn.Sequential(*[MixtureLayer() for _ in range(LAYERS)]).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    tokens = torch.randn(8, TOKENS, WIDTH, device=device)
    mixing = torch.randn(WIDTH, WIDTH, device=device) / WIDTH ** 0.5
    targets = tokens @ mixing
    average = torch.ones((), device=device)
    start = time.time()
    for step in range(STEPS):
        loss = F.mse_loss(model(tokens[step % 8]), targets[step % 8])  # also
        opt.zero_grad(set_to_none=True)
        loss.backward()  # also
        opt.step()
        average.lerp_(loss.detach(), 0.05)
    print("average loss %.4f" % average.item(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
