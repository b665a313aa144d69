"""Matrix-factorisation recommender trained on sampled clicks."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
USERS, ITEMS, DIM = 6_000_000, 2_000_000, 64
BATCH, STEPS = 4096, 100


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, DIM, device=device)  # answer
        self.items = nn.Embedding(ITEMS, DIM, device=device)  # answer
        self.scale = nn.Parameter(torch.tensor(0.1, device=device))
        self.tower = nn.Linear(DIM, DIM, device=device)

    def forward(self, user, item):
        u = self.tower(self.users(user))
        v = self.items(item)
        return self.scale * (u * v).sum(dim=1)


def sample_clicks(generator):
    user = torch.randint(USERS, (BATCH,), device=device, generator=generator)
    item = torch.randint(ITEMS, (BATCH,), device=device, generator=generator)
    label = ((user + item) % 2).float()
    return user, item, label


def main():
    torch.manual_seed(0)
    generator = torch.Generator(device=device).manual_seed(1)
    model = Recommender()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)  # answer
    total = torch.zeros((), device=device)
    start = time.time()
    for step in range(STEPS):
        user, item, label = sample_clicks(generator)
        score = model(user, item)
        loss = F.binary_cross_entropy_with_logits(score, label)
        opt.zero_grad()
        loss.backward()  # answer
        opt.step()  # answer
        total += loss.detach()
    print("mean loss", total.item() / STEPS, "seconds", time.time() - start)


if __name__ == "__main__":
    main()
