"""What JAX compiles, by the line that caused it, and the lines that the kernels of its programs stand for."""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from contextlib import suppress
from itertools import islice
from types import FrameType
from typing import Any

from ..own_library import is_foreign
from .operations_file import MAX_KERNELS, MAX_ROWS, add_to_file
from .xla_copies import copied_arguments
from .xla_modules import kernel_lines, module_texts


class JaxCompiler:
    """Counts what JAX compiles, by the line of the program that caused it."""

    def __init__(self, out: str) -> None:
        self._out = out
        self._compiled: dict[tuple[str, int, str, str], list[float]] = {}
        self._kernels: list[list[object]] = []
        self._copied: list[list[object]] = []

    def start(self) -> None:
        """Hear of compilations from here on."""
        importlib.import_module("jax.monitoring").register_event_duration_secs_listener(self._hear)
        os.register_at_fork(after_in_child=self._compiled.clear)  # what a child compiles is its own
        atexit.register(self._note_kernels)  # before what jax has registered, which lets go of its programs

    def _note_kernels(self) -> None:
        if not self._compiled:  # to ask for its devices would begin to use them
            return
        with suppress(Exception):
            client: Any = sys.modules["jax"].devices()[0].client
            texts = list(module_texts(client.live_executables()))
            self._kernels = kernel_lines(texts, is_foreign)
            self._copied = list(islice(copied_arguments(texts, is_foreign), MAX_KERNELS))

    def _hear(self, event: str, seconds: float, /, **about: Any) -> None:
        if not event.endswith("/backend_compile_duration"):
            return
        with suppress(Exception):  # the program comes first
            frame: FrameType = sys._getframe(1)
            while frame.f_back is not None and is_foreign(frame.f_code.co_filename):
                frame = frame.f_back
            file, name = os.path.abspath(frame.f_code.co_filename), str(about.get("fun_name", ""))
            place = (file, frame.f_lineno, frame.f_code.co_name, name)
            self._compiled.setdefault(place, []).append(float(seconds))

    def finish(self) -> None:
        """Write, as the process ends, the lines that caused recompilations, those of the kernels, and copies."""
        again = [(key, found) for key, found in self._compiled.items() if len(found) > 1]
        again.sort(key=lambda item: -sum(item[1]))
        rows = [[*key, len(found) - 1, sum(found) / len(found)] for key, found in again[:MAX_ROWS]]
        if rows or self._kernels:
            copied = {"copied": self._copied} if self._copied else {}
            add_to_file(self._out, jax=rows, kernels=self._kernels, **copied)
