"""Train a denoising diffusion model of cloud images."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
SIDE, BATCH, LEVELS, STEPS = 256, 64, 1000, 90


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.level = nn.Embedding(LEVELS, width)
        self.enter = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, 1, 1)) for _ in range(4))
        self.leave = nn.ConvTranspose2d(width, 3, 4, 4)

    def forward(self, x, t):
        h = self.enter(x) + self.level(t)[:, :, None, None]
        for block in self.blocks:
            h = h + block(h)
        return self.leave(h)


class Diffusion:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)  # also
        self.keep = torch.cumprod(1 - torch.linspace(1e-4, 0.02, LEVELS), 0).to(device)

    def loss(self, model, image):
        noise = torch.randn(image.shape, generator=self.generator).to(image.device)  # answer
        t = torch.randint(0, LEVELS, (len(image),), generator=self.generator).to(image.device)  # also
        keep = self.keep[t][:, None, None, None]
        noisy = keep.sqrt() * image + (1 - keep).sqrt() * noise
        return F.mse_loss(model(noisy, t), noise)


def main():
    torch.manual_seed(0)
    model = Denoiser().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    diffusion = Diffusion(seed=1)
    clouds = torch.rand(4, BATCH, 3, SIDE, SIDE, device=device) * 2 - 1
    average = torch.ones((), device=device)
    start = time.time()
    for step in range(STEPS):
        loss = diffusion.loss(model, clouds[step % 4])  # also
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        average.lerp_(loss.detach(), 0.05)
    print("average loss %.4f" % average.item(), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
