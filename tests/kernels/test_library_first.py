"""Workers, kernels' processes and the command itself beside a folder on PYTHONPATH that has library modules' names."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli_runner import ENVIRONMENT, profkit

PROGRAM = Path(__file__).parents[2] / "setup" / "profkit"
KERNEL = "from profkit.evaluation import kernel\n\n@kernel('relu.default')\ndef relu(x):\n    return x.clamp(min=0)\n"
# What Python itself imports before any of our lines runs: beside such a file no program works.
BEFORE = "import sys, runpy; print(*{name.partition('.')[0] for name in sys.modules})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each module of the library that is not imported before any of ours."""
    folder = tmp_path_factory.mktemp("mine")
    done = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True, check=True)
    names = {name for name in sys.stdlib_module_names if find_spec(name)}
    names -= {*done.stdout.split(), *sys.builtin_module_names, "antigravity", "this"}
    assert {"copy", "json", "random", "re", "tempfile"} <= names
    for name in names:
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name} of the user was imported')\n")
    return folder


@pytest.mark.thorough
@pytest.mark.torch
def test_workers_take_the_library_of_the_interpreter(folder: Path, tmp_path: Path) -> None:
    """An evaluation has both: a worker, as a sweep has it, and processes of kernels."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    words = ("evaluate", "kernel.py", "--device", "cpu", "--ops", "relu", "--correctness-only")
    done = profkit(*words, cwd=tmp_path, env={"PYTHONPATH": str(folder)}, process=True)
    assert done.code == 0, done.err


def test_the_installed_command_takes_the_library_of_the_interpreter(folder: Path, tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((str(folder), str(PROGRAM.parents[1])))}
    done = subprocess.run(
        [sys.executable, PROGRAM, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "evaluate" in done.stdout
