"""Pick arrivals in seismograms with a two-layer recurrent network."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
CHANNELS, HIDDEN, LENGTH, BATCH = 3, 256, 512, 64
STEPS = 8


class Recurrent(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(inputs, 4 * hidden)
        self.from_state = nn.Linear(hidden, 4 * hidden, bias=False)

    def cell(self, x, h, c):
        i, f, g, o = (self.from_input(x) + self.from_state(h)).chunk(4, dim=1)  # also
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)  # also
        return torch.sigmoid(o) * torch.tanh(c), c  # also

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.hidden)
        c = torch.zeros_like(h)
        outputs = []
        for t in range(x.shape[1]):  # also
            h, c = self.cell(x[:, t], h, c)  # answer
            outputs.append(h)  # also
        return torch.stack(outputs, dim=1)  # also


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower = Recurrent(CHANNELS, HIDDEN)
        self.upper = Recurrent(HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, 3)

    def forward(self, x):
        return self.head(self.upper(self.lower(x)))  # also


def train():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = Picker().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=device == "cuda")
    trace = torch.randn(BATCH, LENGTH, CHANNELS, device=device)
    phase = torch.randint(0, 3, (BATCH, LENGTH), device=device)
    start = time.time()
    for step in range(STEPS):
        loss = F.cross_entropy(model(trace).flatten(0, 1), phase.flatten())  # also
        opt.zero_grad(set_to_none=True)
        loss.backward()  # also
        opt.step()
    print("loss %.4f" % loss.item(), "seconds", time.time() - start)


if __name__ == "__main__":
    train()
