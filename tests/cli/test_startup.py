"""What a verb's help costs: nothing but the command line's own modules is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "arguments", [["--help"], ["profile", "--help"], ["summarize", "--help"]], ids=" ".join
)
def test_help_imports_nothing_but_the_command_line(arguments: list[str]) -> None:
    argv = [sys.executable, "-X", "importtime", "-m", "profkit", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    ours = {name for name in imported if name.startswith("profkit.") and not name.startswith("profkit.cli")}
    assert ours == {"profkit.errors"}
    assert not imported & {"yaml", "numpy", "torch", "psutil"}
