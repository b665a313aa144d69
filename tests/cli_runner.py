"""Calls the command line as a user does, in a folder of its own.

A command runs inside the process of the tests, which saves it the start of Python and all imports: half of what most of
them cost. `sweep`, and what a test asks for, has a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import typer.main

PROFKIT = (sys.executable, "-m", "profkit")
# For a pytest that a test starts: plugins of other packages, whose imports are half of what its start costs.
WITHOUT_OTHERS = ("-p", "no:hypothesispytest", "-p", "no:anyio")
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


# What a process learns about the programs of its machine, once.
PROBES = (
    ("profkit.profilers.ncu.probe", "probe_ncu"),
    ("profkit.profilers.nsys.probe", "probe_nsys"),
    ("profkit.profilers.valgrind.probe", "probe_valgrind"),
    ("profkit.profilers.xctrace.export", "_ask_xcrun"),
    ("profkit.profilers.xctrace.export", "_ask_version"),
)

# The verbs with their options, put together once a process: 45 ms, which else every call pays.
_command = lru_cache(typer.main.get_command)


def profkit(
    *arguments: str | Path,
    cwd: Path,
    env: dict[str, str] | None = None,
    timeout: float = 120,
    process: bool | None = None,
) -> Said:
    """Call `profkit` with `arguments` in `cwd`; in a process of its own where `process` or else the command says so."""
    words = [str(argument) for argument in arguments]
    if process is None:
        process = not words or words[0] == "sweep"
    if not process:
        return call_in_process(words, cwd, {**ENVIRONMENT, **(env or {})})
    done = subprocess.run(
        [*PROFKIT, *words],
        cwd=cwd,
        env={**ENVIRONMENT, **(env or {})},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def call_in_process(words: list[str], cwd: Path, env: dict[str, str]) -> Said:
    """What `main` does, without leaving the process and without taking its signals."""
    from profkit import cli
    from profkit.cli import options

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
    code: object = 0
    for module, probe in PROBES:
        if module in sys.modules:
            getattr(sys.modules[module], probe).cache_clear()
    with (
        contextlib.chdir(cwd) if sys.version_info >= (3, 11) else _folder(cwd),
        mock.patch.dict(os.environ, env, clear=True),
        mock.patch.object(sys, "argv", ["profkit", *words]),
        mock.patch.object(sys, "stdin", io.StringIO()),
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.multiple(options, _requested=options.OutputFormat.terminal, _printed=False),
        mock.patch.object(typer.main, "get_command", _command),
    ):
        try:
            cli._run()
        except SystemExit as leaving:
            code = leaving.code
    out.flush()
    err.flush()
    printed, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return Said(code if isinstance(code, int) else int(code is not None), printed, complained)


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def runs(folder: Path) -> list[Any]:
    """Every run.json below `folder`, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/run.json"))]
