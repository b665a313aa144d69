"""Train a residual MLP surrogate of a simulator, bfloat16 throughout."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, DEPTH = 1024, 24
BATCH, STEPS = 8192, 60


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + 0.1 * F.gelu(self.fc(x))


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(64, WIDTH)
        self.blocks = nn.Sequential(*[Block(WIDTH) for _ in range(DEPTH)])
        self.out = nn.Linear(WIDTH, 16)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x)))


def main():
    torch.manual_seed(0)
    model = Surrogate().to(device, torch.bfloat16)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    design = torch.randn(16 * BATCH, 64, device=device, dtype=torch.bfloat16)
    answer = torch.tanh(design[:, :16] * design[:, 16:32])
    start = time.time()
    for step in range(STEPS):
        lo = (step % 16) * BATCH
        x, y = design[lo:lo + BATCH], answer[lo:lo + BATCH]
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()  # answer
        if step % 80 == 79:
            print(step, loss.item())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
