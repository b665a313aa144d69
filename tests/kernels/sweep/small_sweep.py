"""A small sweep on the CPU, with implementations that misbehave as real ones do."""

from __future__ import annotations

import sys
from pathlib import Path

from profkit.core.types import CaseResult
from profkit.kernels.sweep import journal as journals
from profkit.kernels.sweep.request import Grid, SweepRequest, TimingOptions

MISBEHAVING = """
import os, sys, time
from profkit.sweep import Unavailable, implementation

@implementation("GELU", "wrong")
def wrong(problem):
    import torch
    return lambda: torch.zeros_like(problem.inputs[0])

@implementation("GELU", "dies")
def dies(problem):
    os.kill(os.getpid(), 11)

@implementation("GELU", "leaves")
def leaves(problem):
    print("what it printed last", file=sys.stderr, flush=True)
    os._exit(3)

@implementation("GELU", "hangs")
def hangs(problem):
    time.sleep(3600)

@implementation("GELU", "raises")
def raises(problem):
    raise ValueError("no kernel for <script>alert(1)</script>")

@implementation("GELU", "prints")
def prints(problem):
    import torch
    print('{"event": "done"}', flush=True)
    (x,) = problem.inputs
    return lambda: torch.nn.functional.gelu(x)

@implementation("GELU", "cannot be had")
def cannot(problem):
    raise Unavailable("needs a coprocessor", "buy one")

@implementation("GELU", "too much")
def too_much(problem):
    import torch
    return lambda: torch.empty(1 << 55, dtype=torch.float32)
"""


def request_for(folder: Path, *names: str, files: tuple[Path, ...] = (), **more: object) -> SweepRequest:
    """A sweep of GELU over two shapes."""
    grid = Grid(("GELU",), names, (2,), (3,), (8, 16))
    defaults: dict[str, object] = {"timing": TimingOptions(0.5, 0.02, threads=1), "timeout": 60.0}
    return SweepRequest(
        grid=grid,
        folder=folder,
        device="cpu",
        files=tuple(map(str, files)),
        python=sys.executable,
        **{**defaults, **more},
    )  # type: ignore[arg-type]


def settled(request: SweepRequest, cases: int | None = None) -> None:
    """A journal as a sweep leaves it that settled its first `cases`, without anything being measured."""
    journal = journals.begin(
        request.folder / journals.FILE, {"started": "2026-01-01T00:00:00+00:00", **request.header}
    )
    about = {"device": "a device", "versions": {"torch": "0"}, "roofs": {"bandwidth": 1e10, "flops": 1e11}}
    journal.note(about=about)
    points = [(point, name) for point in request.grid.points() for name in request.grid.implementations]
    for number, (point, name) in enumerate(points[:cases]):
        seconds = tuple(1e-5 * (number + 1) + n % 7 * 1e-8 for n in range(20))
        journal.add(
            CaseResult(
                point, name, "measured", median=seconds[3], seconds=seconds, samples=20, bytes=8.0, flops=8.0
            ),
            float(number),
        )
    journal.close()
