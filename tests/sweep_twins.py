"""Sweeps of the same code for tests of comparing: measured ones, and as many made-up ones as are wanted."""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Callable, Mapping
from math import exp, sqrt
from pathlib import Path

from profkit.core.types import CaseResult, GridPoint, RunDocument, SweepDocument
from profkit.kernels.sweep.outputs import sweep_as_run

TWINS = Path(__file__).resolve().parent / "data" / "sweeps" / "twins.csv.gz"
NAMES = ("a1", "a4", "a4b", "b1", "b4")
Case = tuple[GridPoint, str]
Times = Mapping[Case, tuple[float, float]]  # seconds, and half of the interval as a share


def measured() -> dict[str, Times]:
    """The five sweeps that were measured."""
    found: dict[str, dict[Case, tuple[float, float]]] = {name: {} for name in NAMES}
    with gzip.open(TWINS, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = GridPoint(
                row["operation"], int(row["batch"]), int(row["sequence"]), int(row["dimension"])
            )
            for name in NAMES:
                times = float(row[name]) * 1e-9, float(row[f"half_{name}"]) / 100
                found[name][point, row["implementation"]] = times
    return dict(found)


def sweep(
    times: Times, *, torch: str = "2.11.0", complete: bool = True, clock: str = "cuda-events"
) -> RunDocument:
    """The run of a sweep with these times."""
    results = []
    for (point, name), (seconds, half) in times.items():
        samples = tuple(seconds * (1 + half * (k - 6) / 3) for k in (6, 2, 9, 4, 7, 3, 10, 5, 8))
        results.append(
            CaseResult(
                point,
                name,
                "measured",
                median=seconds,
                half_width=half,
                samples=len(samples),
                seconds=samples,
                cache="cold",
                clock=clock,  # type: ignore[arg-type]
            )
        )
    versions = {"python": "3.12.3", "torch": torch, "triton": "3.6.0"}
    document = SweepDocument(
        "2026-01-01T00:00:00+00:00",
        "NVIDIA H200",
        tuple(results),
        versions=versions,
        planned=len(results),
        complete=complete,
    )
    return sweep_as_run(document, ("profkit", "sweep"), "sweep", "/tmp", None, (), 0.01)


def changed(times: Times, by: Callable[[GridPoint, str], float]) -> Times:
    """The times, each multiplied."""
    return {(point, name): (t * by(point, name), half) for (point, name), (t, half) in times.items()}


def made_up(
    shapes: int = 20,
    operations: tuple[str, ...] = ("GELU", "MSE", "LayerNorm"),
    names: tuple[str, ...] = ("PyTorch", "Triton", "CUDA"),
) -> Times:
    """A sweep without noise."""
    points = [GridPoint(op, 16, 256, 8 << n) for op in operations for n in range(shapes)]
    return {(p, name): (1e-5 + 1e-12 * p.dimension, 0.005) for p in points for name in names}


def noisy(times: Times, seed: int, *, together: float = 0.006, single: float = 0.011) -> Times:
    """Another sweep of the same code: each panel moves as a whole, each case by itself with heavy tails.

    The standard deviations are of one sweep; two differ by sqrt(2) times as much: 0.85 % and 1.5 %, as was measured.
    """
    source = random.Random(seed)
    of_panel: dict[tuple[str, str], float] = {}

    def by(point: GridPoint, name: str) -> float:
        moved = of_panel.setdefault((point.operation, name), source.gauss(0, together))
        # Student's t with 5 degrees of freedom, as wide as `single`.
        wild = source.gauss(0, 1) / sqrt(source.gammavariate(2.5, 2) / 5)
        return exp(moved + single * wild / sqrt(5 / 3))

    return changed(times, by)
