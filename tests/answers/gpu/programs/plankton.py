"""Train a convolutional classifier on plankton microscope images."""
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS, WARMUP, BATCH, SIZE, CLASSES = 45, 5, 128, 128, 20


class PlanktonImages(Dataset):
    """Stored as uint8 HWC; delivered contrast-corrected, standardised and in CHW order."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        base = rng.integers(0, 256, (CLASSES, SIZE, SIZE, 3), dtype=np.uint8)
        self.labels = rng.integers(0, CLASSES, count)
        noise = rng.integers(0, 64, (count, 1, 1, 3), dtype=np.uint8)
        self.images = (base[self.labels] // 2 + noise).astype(np.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].astype(np.float32) / 255.0
        image = image ** (0.8 + 0.05 * (index % 9))  # also
        if index % 2:
            image = image[:, ::-1]
        image = (image - image.mean(axis=(0, 1))) / (image.std(axis=(0, 1)) + 1e-3)  # answer
        return np.ascontiguousarray(image.transpose(2, 0, 1)), self.labels[index]


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


def build_model():
    layers, width = [], 3
    for cout in (64, 128, 256, 512):
        layers += [block(width, cout), block(cout, cout), nn.MaxPool2d(2)]
        width = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def batches(loader):
    while True:
        yield from loader  # also


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(PlanktonImages(4096, seed=1), batch_size=BATCH, shuffle=True, drop_last=True, pin_memory=True,
                        generator=torch.Generator().manual_seed(2))
    model = build_model().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    total = torch.zeros((), device=device)
    seen = 0
    for step, (images, labels) in zip(range(WARMUP + STEPS), batches(loader)):
        if step == WARMUP:
            torch.cuda.synchronize()
            start = time.perf_counter()
        images = images.to(device, non_blocking=True).to(memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        seen += len(labels)
    torch.cuda.synchronize()
    print(f"steady {time.perf_counter() - start:.2f} s", file=sys.stderr)
    print(seen, "finite" if torch.isfinite(total).item() else "diverged")


if __name__ == "__main__":
    main()
