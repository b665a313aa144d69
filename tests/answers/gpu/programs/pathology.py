"""Train a vision transformer on patches of stained tissue."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
SIDE, PATCH, WIDTH, HEADS, DEPTH, GRADES = 224, 16, 1024, 16, 8, 5
BATCH, STEPS = 64, 40


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)  # also
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))  # also

    def attend(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)  # also
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(n, t, WIDTH))  # also

    def forward(self, x):
        x = x + self.attend(self.norm1(x))  # also
        return x + self.mlp(self.norm2(x))  # answer


class TissueTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.place = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2, WIDTH))
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.head = nn.Linear(WIDTH, GRADES)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2) + self.place
        return self.head(self.blocks(x).mean(dim=1))  # also


def main():
    torch.manual_seed(0)  # also
    model = TissueTransformer().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    image = torch.randn(4, BATCH, 3, SIDE, SIDE, device=device)
    grade = torch.randint(0, GRADES, (4, BATCH), device=device)
    losses = []
    start = time.time()
    for step in range(STEPS):
        loss = F.cross_entropy(model(image[step % 4]), grade[step % 4])  # also
        opt.zero_grad(set_to_none=True)
        loss.backward()  # also
        opt.step()
        losses.append(loss.detach())
    print("last losses", torch.stack(losses[-4:]).tolist(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
