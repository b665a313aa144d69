"""Fit the power curve of wind turbines; keep the best model by validation error."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
SENSORS, WIDTH, BATCH = 128, 512, 1024
ROWS, HELD_OUT, STEPS = 1_500_000, 1_000_000, 700


class EarlyStopping:
    def __init__(self, x, y, patience):
        self.x, self.y, self.patience = x, y, patience
        self.best, self.waited = float("inf"), 0

    @torch.no_grad()
    def should_stop(self, model):  # also
        model.eval()
        error = F.mse_loss(model(self.x), self.y).item()  # answer
        model.train()
        if error < self.best:  # also
            self.best, self.waited = error, 0
        else:
            self.waited += 1
        return self.waited > self.patience


def turbine_data():
    x = torch.randn(ROWS, SENSORS, device=device)
    y = torch.tanh(x[:, :1] + 0.5 * x[:, 1:2] * x[:, 2:3])
    return x, y


def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    x, y = turbine_data()
    train_x, train_y = x[HELD_OUT:], y[HELD_OUT:]
    model = nn.Sequential(nn.Linear(SENSORS, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(),
                          nn.Linear(WIDTH, 1)).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    stopper = EarlyStopping(x[:HELD_OUT], y[:HELD_OUT], patience=STEPS)
    start = time.time()
    for step in range(STEPS):
        rows = torch.randint(0, len(train_x), (BATCH,), device=device)
        loss = F.mse_loss(model(train_x[rows]), train_y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if stopper.should_stop(model):  # also
            break
    print("steps", step + 1, "best error %.4f" % stopper.best, "seconds", time.time() - start)


if __name__ == "__main__":
    main()
