"""A PATH of our own, on which tools behave as badly as they do in the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def fake_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Path]:
    """`fake_tools({"perf": "exit 255"})`: PATH holds only these shell scripts."""

    def make(scripts: dict[str, str]) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, body in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr("profkit.profilers.programs.BESIDE_PYTHON", folder)
        return folder

    return make
