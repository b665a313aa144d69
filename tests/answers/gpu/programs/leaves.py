"""Classify leaf photographs; the photographs are kept in memory as uint8."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

device = "cuda" if torch.cuda.is_available() else "cpu"
IMAGES, SIDE, CROP, SPECIES = 1024, 256, 224, 100
BATCH, EPOCHS = 64, 1
MEAN = torch.tensor([0.48, 0.46, 0.41]).view(3, 1, 1)
STD = torch.tensor([0.23, 0.22, 0.22]).view(3, 1, 1)


def prepare(image):  # also
    side = int(torch.randint(SIDE // 2, SIDE + 1, ()))  # also
    top, left = (int(torch.randint(0, SIDE - side + 1, ())) for _ in range(2))  # also
    part = image[:, top:top + side, left:left + side].float() / 255  # also
    part = F.interpolate(part[None], size=(CROP, CROP), mode="bilinear", antialias=True)[0]  # also
    if torch.rand(()) < 0.5:  # also
        part = part.flip(2)  # also
    part = (part * (0.6 + 0.8 * torch.rand(()))).clamp(0, 1)  # also
    grey = part.mean(dim=0, keepdim=True)  # also
    part = grey + (part - grey) * (0.6 + 0.8 * torch.rand(()))  # also
    return (part - MEAN) / STD  # also


def collate(samples):
    images, labels = zip(*samples)
    return torch.stack([prepare(image) for image in images]), torch.tensor(labels)  # answer


def make_model(width=32):
    layers, channels = [], 3
    for stage in range(4):
        out = width * 2 ** stage
        layers += [nn.Conv2d(channels, out, 3, 2, 1), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, SPECIES)).to(device)


def main():
    torch.manual_seed(0)
    photos = torch.randint(0, 256, (IMAGES, 3, SIDE, SIDE), dtype=torch.uint8)
    species = torch.randint(0, SPECIES, (IMAGES,)).tolist()
    loader = DataLoader(list(zip(photos, species)), batch_size=BATCH, shuffle=True, collate_fn=collate,  # also
                        pin_memory=device == "cuda")  # also
    model = make_model()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.time()
    for epoch in range(EPOCHS):
        for images, labels in loader:  # also
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            loss = F.cross_entropy(model(images), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, "loss %.3f" % loss.item())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
