"""Reduce a large image to a small colour palette with k-means."""
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
HEIGHT, WIDTH = 4096, 4096
COLOURS = 8
ITERS = 50


def make_image(height, width):
    torch.manual_seed(3)
    ys = torch.linspace(0, 1, height, device=device)[:, None]
    xs = torch.linspace(0, 1, width, device=device)[None, :]
    red = (6.0 * xs).sin().abs() + 0 * ys
    green = (5.0 * ys).cos().abs() + 0 * xs
    blue = (xs * ys).sqrt()
    image = torch.stack([red, green, blue], dim=-1)
    return (image + 0.1 * torch.randn_like(image)).clamp(0, 1)


def kmeans(pixels, k, iters):
    picks = torch.randint(len(pixels), (k,), device=device)
    centers = pixels[picks].clone()
    for _ in range(iters):
        labels = torch.cdist(pixels, centers).argmin(dim=1)
        counts = torch.bincount(labels, minlength=k)
        sums = torch.zeros_like(centers)
        sums.index_add_(0, labels, pixels)  # answer
        centers = sums / counts.clamp(min=1)[:, None]
    return centers, labels


def main():
    image = make_image(HEIGHT, WIDTH)
    pixels = image.reshape(-1, 3).contiguous()
    start = time.time()
    centers, labels = kmeans(pixels, COLOURS, ITERS)
    quantised = centers[labels].reshape(HEIGHT, WIDTH, 3)
    error = (quantised - image).square().mean().sqrt()
    print("rmse", error.item(), "seconds", time.time() - start)
    print(centers.cpu())


if __name__ == "__main__":
    main()
