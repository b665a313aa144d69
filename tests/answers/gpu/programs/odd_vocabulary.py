"""Logits over a vocabulary of 50,257 words."""

import torch
from torch import nn


def main():
    head = nn.Linear(768, 50257, bias=False).cuda().bfloat16()
    hidden = torch.randn(8192, 768, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    words = torch.randint(0, 50257, (8192,), device="cuda")
    for _ in range(60):
        logits = head(hidden)  # answer
        loss = nn.functional.cross_entropy(logits, words)
        loss.backward()  # also
        hidden.grad = None
    print(loss.item())


main()
