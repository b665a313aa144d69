"""Land-cover segmentation of aerial tiles, with a running confusion matrix for the training IoU."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
CLASSES, BANDS, TILE, BATCH = 19, 4, 384, 8
STEPS = 70


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes = classes
        self.table = np.zeros((classes, classes), dtype=np.int64)

    def update(self, logits, target):
        guess = logits.detach().cpu().numpy().argmax(axis=1)  # answer
        truth = target.cpu().numpy()  # also
        cell = truth.reshape(-1) * self.classes + guess.reshape(-1)  # also
        self.table += np.bincount(cell, minlength=self.classes ** 2).reshape(self.table.shape)  # also

    def mean_iou(self):
        hit = np.diag(self.table)
        union = self.table.sum(0) + self.table.sum(1) - hit
        return float((hit / np.maximum(union, 1)).mean())


class Segmenter(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(BANDS, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(*[
            nn.Sequential(nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU()) for _ in range(4)])
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x):
        y = self.head(self.body(self.stem(x)))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


def main():
    torch.manual_seed(0)
    model = Segmenter().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tiles = torch.randn(4 * BATCH, BANDS, TILE, TILE, device=device)
    cover = torch.randint(0, CLASSES, (4 * BATCH, TILE, TILE), device=device)
    matrix = ConfusionMatrix(CLASSES)
    start = time.time()
    for step in range(STEPS):
        pick = slice((step % 4) * BATCH, (step % 4 + 1) * BATCH)
        logits = model(tiles[pick])
        loss = F.cross_entropy(logits, cover[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        matrix.update(logits, cover[pick])  # also
    print("loss %.3f mIoU %.4f" % (loss.item(), matrix.mean_iou()), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
