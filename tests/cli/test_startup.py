"""What a verb's help costs: nothing but the command line's own modules is imported for it."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest


@pytest.mark.parametrize(
    "arguments", [["--help"], ["profile", "--help"], ["summarize", "--help"]], ids=" ".join
)
def test_help_imports_nothing_but_the_command_line(arguments: list[str]) -> None:
    argv = [sys.executable, "-X", "importtime", "-m", "profkit", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    ours = {name for name in imported if name.startswith("profkit.") and not name.startswith("profkit.cli")}
    assert ours == {"profkit.core", "profkit.core.errors"}
    assert not imported & {"yaml", "numpy", "torch", "psutil"}


@pytest.mark.parametrize("verb", ["compare", "nightly", "report"])
def test_what_stands_below_a_help_fills_the_lines_of_the_terminal(verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "profkit", verb, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    lines = [line.strip() for line in done.stdout.rpartition("╯")[2].splitlines()]
    broken = [
        (one, two)
        for one, two in pairwise(lines)
        if one and two and len(one) + 1 + len(two.split()[0]) <= 78  # the word would have had room
    ]
    assert broken == []
