"""Causal attention written out, forward and backward."""

import math

import torch


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # answer
    scores = scores.masked_fill(mask, float("-inf"))  # also
    weights = torch.softmax(scores, dim=-1)  # also
    return weights @ v  # also


def main():
    batch, heads, length, width = 4, 16, 2048, 64
    mask = torch.ones(length, length, dtype=torch.bool, device="cuda").triu(1)
    q, k, v = (
        torch.randn(batch, heads, length, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    )
    for _ in range(80):
        out = attention(q, k, v, mask)  # also
        out.sum().backward()
    torch.cuda.synchronize()
    print(float(q.grad[0, 0, 0, 0]))


main()
