"""Train a tabular MLP and keep an exponential moving average of its weights for evaluation."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, DEPTH, BATCH, STEPS = 4096, 6, 1024, 16


class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}  # answer

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():  # answer
            self.shadow[name].lerp_(p.detach().cpu(), 1.0 - self.decay)  # answer

    @torch.no_grad()
    def copy_to(self, model):
        for name, p in model.named_parameters():
            p.copy_(self.shadow[name])


def make_model():
    layers = []
    for _ in range(DEPTH):
        layers += [nn.Linear(WIDTH, WIDTH), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1)).to(device)


def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = make_model()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    average = Average(model, decay=0.99)
    x = torch.randn(STEPS, BATCH, WIDTH, device=device)
    y = x[:, :, :8].sum(dim=2, keepdim=True)
    losses = torch.zeros(STEPS, device=device)
    start = time.time()
    for step in range(STEPS):
        loss = F.mse_loss(model(x[step]), y[step])
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update(model)  # answer
        losses[step] = loss.detach()
    average.copy_to(model)
    with torch.no_grad():
        final = F.mse_loss(model(x[0]), y[0])
    print("losses %.3f -> %.3f, averaged %.3f" % (losses[0], losses[-1], final), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
