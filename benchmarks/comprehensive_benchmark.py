#!/usr/bin/env python3
"""Run the comprehensive benchmark as its guide does, with the records that its analysis expects.

    python benchmarks/comprehensive_benchmark.py --operations Loss --device cpu
    from benchmarks.comprehensive_benchmark import run_comprehensive_benchmark

These records have only cases with a time, and MSE and CrossEntropy are the operation `Loss` (`loss` names which). All
cases, with the reason why a case has no time, are in the sweep's folder and in `profkit.sweep`'s own records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # whatever the working directory

RESULTS = "benchmark_results.json"
LOSSES = ("MSE", "CrossEntropy")


def run_comprehensive_benchmark(
    *axes: Any, output_file: str | Path = RESULTS, **named: Any
) -> list[dict[str, Any]]:
    """Run `profkit.sweep.run_comprehensive_benchmark`; return the guide's records and write them to `output_file`."""
    from profkit.sweep import run_comprehensive_benchmark as run

    if len(axes) > 4:  # the file may be the fifth argument, as it is there
        axes, output_file = axes[:4], axes[4]
    records = records_with_times(run(*axes, output_file=output_file, **named))
    _write(Path(output_file), records)
    return records


def records_with_times(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records that have a time, with the guide's name `Loss` for both losses."""
    return [
        {**record, "operation": "Loss", "loss": record["operation"]}
        if record["operation"] in LOSSES
        else {**record}
        for record in records
        if record["time_ms"] is not None
    ]


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps(records, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Run `profkit sweep` with these options; exit with its exit code."""
    from benchmark.comprehensive_benchmark import main as sweep

    named = any(word == "--results" or word.startswith("--results=") for word in arguments)
    path, before = Path(RESULTS), None
    with_file = not named and not {"--plan", "--help"} & {*arguments}
    if with_file and path.is_file():
        before = path.stat().st_mtime_ns
    try:
        sweep(arguments)
    finally:  # sweep ends with SystemExit; what was measured before a Ctrl-C is written, too
        if with_file and path.is_file() and path.stat().st_mtime_ns != before:
            _write(path, records_with_times(json.loads(path.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main(sys.argv[1:])
