"""Compiled residual policy network that steers a batch of simulated carts."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
CARTS, STATE, WIDTH, DEPTH, STEPS = 256, 8, 512, 16, 3500
LIMIT = 50.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, WIDTH)
        self.down = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.down(F.gelu(self.up(self.norm(x))))
        peak = h.abs().amax()  # also
        if peak > LIMIT:  # answer
            h = h * (LIMIT / peak)  # also
        return x + h


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(STATE, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.leave = nn.Linear(WIDTH, STATE)

    def forward(self, state):
        x = torch.tanh(self.enter(state))
        for block in self.blocks:
            x = block(x)  # also
        return torch.tanh(self.leave(x))


@torch.no_grad()
def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    policy = torch.compile(Policy().to(device).eval())
    state = torch.randn(CARTS, STATE, device=device)
    drift = torch.randn(STATE, STATE, device=device) * 0.1
    for _ in range(3):
        policy(state)
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.time()
    for step in range(STEPS):
        state = 0.98 * state + 0.05 * policy(state) + 0.01 * state @ drift
    print("state norm %.4f" % state.norm().item(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
