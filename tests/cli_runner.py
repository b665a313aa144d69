"""Runs the command line as a user does: in a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROFKIT = (sys.executable, "-m", "profkit")
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}

# A workload that uses profkit.benchmark, takes a millisecond an iteration and imports nothing heavy.
MARKED = """
import profkit

def work():
    total = 0
    for number in range(8000):
        total += number * number
    return total

profkit.benchmark(work, name="squares")
"""


@dataclass(frozen=True)
class Said:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as the one JSON document it should be."""
        return json.loads(self.out)


def profkit(
    *arguments: str | Path, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120
) -> Said:
    """Call `profkit` with `arguments` in `cwd`."""
    done = subprocess.run(
        [*PROFKIT, *map(str, arguments)],
        cwd=cwd,
        env={**ENVIRONMENT, **(env or {})},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def runs(folder: Path) -> list[Any]:
    """Every run.json below `folder`, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/run.json"))]
