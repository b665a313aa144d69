"""The list of suites, and how one is found by its name."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.suites.suite import Suite, is_file


def _open_smoke(_: Path | None) -> Any:
    """Return the suite of a few hard cases."""
    from profkit.kernels.evaluation.suites.written import Smoke

    return Smoke()


def _open_opinfo(_: Path | None) -> Any:
    """Return the suite of torch's own samples."""
    from profkit.kernels.evaluation.suites.opinfo import OpInfo

    return OpInfo()


def _open_torchbench(path: Path | None) -> Any:
    """Return the suite of the calls of 155 models, or of those in the trace at `path`."""
    from profkit.kernels.evaluation.suites.written import torchbench

    return torchbench(path)


def _open_traced(path: Path | None) -> Any:
    """Return the suite of the calls of the user's program, whose trace is at `path`."""
    from profkit.kernels.evaluation.suites.written import traced

    return traced(path)


# Each imports its module when it is called: all of them import torch, which the command line does not need.
_SUITES: dict[str, Callable[[Path | None], Any]] = {
    "smoke": _open_smoke,
    "opinfo": _open_opinfo,
    "torchbench": _open_torchbench,
    "traced": _open_traced,
}
_OF_TRACES = ("torchbench", "traced")


def find_suite(name: str, path: Path | None = None, *, device: str = "cpu", seed: int = 0) -> Suite:
    """Return the suite of that name, for kernels on the device: cpu or cuda.

    `path` is a trace for `traced`, for `torchbench` in place of its own table, and else the place of the user's
    file; what that file draws while it is run follows from `seed`. Raises UsageError where there is no such
    suite.
    """
    suite: Any
    if is_file(name):
        from profkit.kernels.evaluation.suites.op_tests import load_suite

        suite = load_suite(path or Path(name), seed)
        return replace(suite, device=device)  # type: ignore[no-any-return]
    if name not in _SUITES:
        raise UsageError(f"there is no suite called {name!r}", f"--suite {'|'.join((*_SUITES, 'FILE.py'))}")
    if path is not None and name not in _OF_TRACES:
        raise UsageError(
            f"the suite {name} takes no trace",
            f"--suite {'|'.join(_OF_TRACES)} --traces {shlex.quote(str(path))}",
        )
    suite = _SUITES[name](path)
    return replace(suite, device=device)  # type: ignore[no-any-return]
