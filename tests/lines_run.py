"""Which lines of profkit the tests run: `PROFKIT_COVERAGE=1 ./check.sh`, or PROFKIT_COVERAGE=FOLDER for one pytest.

Each process of pytest measures itself, and none that a test starts: those are what profkit profiles, and a tracer in
them would be profiled, too. sys.monitoring (Python 3.12) costs little, since a line is reported once and then switched
off; an older Python calls a trace function at each line, which also replaces that of a test.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = "PROFKIT_COVERAGE"  # variable: the folder to which each process writes which lines it ran
# A worker takes it out of its environment: a pytest that a test starts is part of what is tested. The process that
# starts the workers runs no test, and has to hand it on.
_FOLDER = os.environ.pop(FOLDER, None) if "PYTEST_XDIST_WORKER" in os.environ else os.environ.get(FOLDER)
_SETTINGS = Path(__file__).resolve().parent.parent / "pyproject.toml"
_measured: Any = None


def begin(folder: str) -> Any:
    """Measure this process from now on. Raises UsageError before Python 3.12."""
    if sys.version_info < (3, 12):
        raise pytest.UsageError(f"{FOLDER} needs Python 3.12: PYTHON=python3.13 ./setup.sh --dev")
    import coverage

    file = Path(folder) / ".coverage"
    measured = coverage.Coverage(data_file=str(file), data_suffix=True, config_file=str(_SETTINGS))
    measured.start()
    return measured


def pytest_unconfigure() -> None:
    """Write what this process ran."""
    if _measured is not None:
        _measured.stop()
        _measured.save()


if _FOLDER is not None:
    _measured = begin(_FOLDER)
