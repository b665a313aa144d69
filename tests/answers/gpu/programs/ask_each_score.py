"""Boxes are filtered in a loop whose conditions are read from the device one by one."""

import torch


def keep_boxes(boxes, scores):
    kept = []
    for at in range(len(scores)):
        if scores[at] > 0.5:  # answer
            kept.append(boxes[at])  # also
    return torch.stack(kept)


def main():
    boxes = torch.rand(400, 4, device="cuda")
    scores = torch.rand(400, device="cuda")
    for _ in range(100):
        found = keep_boxes(boxes, scores)  # also
    print(found.shape)


main()
