"""Which files the modules of a Python process came from: two versions that load the same ones are no two versions."""

from __future__ import annotations

import atexit
import os
import sys


def start(folder: str) -> None:
    """Write their paths into a file of `folder`, a line each, when this process ends."""
    atexit.register(_write, folder)


def _write(folder: str) -> None:
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    lines = sorted(os.path.abspath(path) for path in files if isinstance(path, str) and "\n" not in path)
    try:
        with open(os.path.join(folder, f"{os.getpid()}.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    except (OSError, ValueError):
        pass  # the program has ended well, and stays so
