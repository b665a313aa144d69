"""Recorded /proc and /sys trees: one file each, in the form `tail -v -n +1 FILES` prints them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

TREES = Path(__file__).resolve().parent.parent / "data" / "hardware"


def unpack(content: str, root: Path) -> Path:
    pieces = re.split(r"^==> (\S+) <==$", content, flags=re.MULTILINE)
    for path, text in zip(pieces[1::2], pieces[2::2], strict=True):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.lstrip("\n"))
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """`tree("amd_zen4", {"proc/loadavg": "9 9 9"})`: that recorded machine, with some files replaced."""

    def make(name: str, changes: dict[str, str] | None = None) -> Path:
        root = unpack((TREES / f"{name}.tree").read_text(), tmp_path / name)
        for path, text in (changes or {}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return make
