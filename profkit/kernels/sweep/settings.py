"""What one implementation can change for all others in its process: it is noticed, and put back.

A number of threads, a default dtype or gradients that are off would be in everybody's times from then on; kernels that
replace functions of torch where they are loaded have been published. Imports torch: for workers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType
from typing import Any

import torch

Setting = tuple[Callable[[], Any], Callable[[Any], object]]


class TorchState:
    """The settings and functions of torch as they are when this is made."""

    def __init__(self) -> None:
        self._settings_of_torch = _settings_of_torch()
        self._values = {name: get() for name, (get, _) in self._settings_of_torch.items()}
        self._functions = [
            (name, holder, {key: value for key, value in vars(holder).items() if _is_watched(holder, value)})
            for name, holder in _watched_modules()
        ]

    def put_back(self) -> tuple[str, ...]:
        """The names of what is not as it was; now it is again."""
        changed = []
        for name, (get, put) in self._settings_of_torch.items():
            with suppress(OSError, RuntimeError):
                if self._read_setting(get) != self._values[name]:
                    changed.append(name)
                    put(self._values[name])
        for name, holder, before in self._functions:
            now = vars(holder)
            for key, value in before.items():
                if now.get(key) is not value:
                    changed.append(f"{name}.{key}")
                    setattr(holder, key, value)
        return tuple(changed)

    @staticmethod
    def _read_setting(get: Callable[[], Any]) -> Any:
        with suppress(OSError):  # a working directory that is gone
            return get()
        return None


def _watched_modules() -> tuple[tuple[str, Any], ...]:
    """Where the functions are that computing, timing and checking call."""
    return (
        ("torch", torch),
        ("torch.nn.functional", torch.nn.functional),
        ("torch.Tensor", torch.Tensor),
        ("torch.autograd", torch.autograd),
        ("torch.cuda", torch.cuda),
        ("torch.linalg", torch.linalg),
        ("time", time),
    )


def _is_watched(holder: Any, value: object) -> bool:
    """Of torch itself only what is compiled: some of the rest Dynamo replaces, when it is first used."""
    return isinstance(value, BuiltinFunctionType) if holder is torch else callable(value)


def _settings_of_torch() -> dict[str, Setting]:
    """Each by what sets it: how it is read, and how it is set."""
    settings: dict[str, Setting] = {
        "torch.set_default_device": (_default_device, torch.set_default_device),
        "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
        "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
        "torch.set_float32_matmul_precision": (
            torch.get_float32_matmul_precision,
            torch.set_float32_matmul_precision,
        ),
        "torch.use_deterministic_algorithms": (
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
        "os.chdir": (os.getcwd, os.chdir),
    }
    if torch.cuda.is_initialized():
        device = torch.cuda.current_device()
        settings["torch.cuda.set_device"] = (torch.cuda.current_device, torch.cuda.set_device)
        settings["torch.cuda.set_stream"] = (
            partial(torch.cuda.current_stream, device),
            torch.cuda.set_stream,
        )
    return settings


def _default_device() -> Any:
    """None where none was chosen: torch's own choice, which costs nothing at each call."""
    chosen = torch.get_default_device()
    return None if chosen == torch.device("cpu") else chosen
