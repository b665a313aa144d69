"""A wheel of this repository, and the Python packages that tests install from an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

installs = pytest.mark.skipif(
    os.environ.get("PROFKIT_INSTALL") != "1",
    reason="PROFKIT_INSTALL=1 installs packages from an index: minutes",
)


def build_wheel(folder: Path) -> Path:
    """Build it from a copy, since a build leaves a folder beside its sources."""
    source = folder / "source"
    for name in ("profkit", "setup"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, source], check=True
    )
    return next(folder.glob("profkit-*.whl"))
