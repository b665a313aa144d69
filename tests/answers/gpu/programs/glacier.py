"""Emulate a glacier model with a wide residual network; safe against interruption."""
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, DEPTH, BATCH, STEPS, EVERY = 4096, 4, 2048, 48, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + F.silu(self.linear(self.norm(x)))


class Keeper:
    def __init__(self, folder, model, opt):
        self.path = os.path.join(folder, "last.pt")
        self.model, self.opt = model, opt

    def after_step(self, step):
        if (step + 1) % EVERY == 0:  # also
            state = {"step": step, "model": self.model.state_dict(), "opt": self.opt.state_dict()}  # also
            torch.save(state, self.path + ".new")  # answer
            os.replace(self.path + ".new", self.path)  # also


def fit(model, opt, callbacks):
    x = torch.randn(8, BATCH, WIDTH, device=device)
    y = x.roll(1, dims=2) * 0.5
    for step in range(STEPS):
        loss = F.mse_loss(model(x[step % 8]), y[step % 8])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        for callback in callbacks:
            callback.after_step(step)  # also
    return loss.item()


def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer() for _ in range(DEPTH)]).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        loss = fit(model, opt, [Keeper(folder, model, opt)])
        print("loss %.4f" % loss, "seconds", time.time() - start)


if __name__ == "__main__":
    main()
