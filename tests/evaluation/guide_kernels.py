"""Kernels that tests hand over: a file of few imports, since each process that runs one of them loads it."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch


def relu(x: Any) -> Any:
    return torch.clamp(x, min=0)


def in_place_of_a_new_tensor(x: Any) -> Any:
    return x.clamp_(min=0)  # right, and its argument is destroyed


def crash(x: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def gated(x: Any, y: Any, *, scale: float = 1.0) -> Any:
    return torch.sigmoid(x @ y) * scale


def gated_in_half(x: Any, y: Any, *, scale: float = 1.0) -> Any:
    return gated(x.bfloat16(), y.bfloat16(), scale=scale).float()


def gated_otherwise(x: Any, y: Any, *, scale: float = 1.0) -> Any:
    return torch.mm(x, y).sigmoid_().mul_(scale)
