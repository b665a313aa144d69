"""Predict the value of a shopping basket from the products in it."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
PRODUCTS, WIDTH, ITEMS, BATCH = 50_000, 128, 20, 512
STEPS = 1200


class ProductEncoder(nn.Module):
    def __init__(self, products, width):
        super().__init__()
        self.products = products
        self.project = nn.Linear(products, width, bias=False)  # also

    def forward(self, ids):
        return self.project(F.one_hot(ids, self.products).float())  # answer


class BasketModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = ProductEncoder(PRODUCTS, WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.value = nn.Linear(256, 1)

    def forward(self, ids, amount):
        item = self.encode(ids) * amount[..., None]  # also
        return self.value(self.mix(item).sum(dim=1)).squeeze(1)


def main():
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    price = torch.rand(PRODUCTS, device=device) * 10
    model = BasketModel().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    average = torch.zeros((), device=device)
    start = time.time()
    for step in range(STEPS):
        ids = torch.randint(0, PRODUCTS, (BATCH, ITEMS), device=device)
        amount = torch.rand(BATCH, ITEMS, device=device)
        truth = (price[ids] * amount).sum(dim=1)
        loss = F.smooth_l1_loss(model(ids, amount), truth)  # also
        opt.zero_grad()
        loss.backward()  # also
        opt.step()
        average.lerp_(loss.detach(), 0.02)
    print("average loss %.3f" % average.item(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
