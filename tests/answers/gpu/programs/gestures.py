"""Gesture classifier on short accelerometer clips; small data set, several epochs."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
CLIPS, LENGTH, AXES, CLASSES = 2048, 96, 6, 12
EPOCHS, BATCH = 12, 128


class Clips(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.label = rng.integers(0, CLASSES, CLIPS)
        wave = np.sin(np.arange(LENGTH) * (1 + self.label[:, None]) / 12)
        noise = rng.standard_normal((CLIPS, AXES, LENGTH))
        self.clip = (wave[:, None, :] + 0.5 * noise).astype(np.float32)

    def __len__(self):
        return CLIPS

    def __getitem__(self, index):
        shift = np.random.randint(LENGTH)
        return np.roll(self.clip[index], shift, axis=1), self.label[index]


def make_model():
    return nn.Sequential(
        nn.Conv1d(AXES, 64, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(64, 128, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
        nn.Flatten(), nn.Linear(128, CLASSES)).to(device)


def main():
    torch.manual_seed(0)
    model = make_model()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(Clips(), batch_size=BATCH, shuffle=True, num_workers=8, pin_memory=device == "cuda")  # answer
    start = time.time()
    for epoch in range(EPOCHS):
        total = torch.zeros((), device=device)
        for clip, label in loader:  # answer
            clip = clip.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            loss = F.cross_entropy(model(clip), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        print("epoch", epoch, "loss %.3f" % (total.item() / len(loader)))
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
