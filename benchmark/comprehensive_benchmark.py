#!/usr/bin/env python3
"""Run the comprehensive benchmark: LayerNorm, GELU, Swish and losses over batch, sequence and dimension.

    python benchmark/comprehensive_benchmark.py
    python benchmark/comprehensive_benchmark.py --operations LayerNorm --batch 16,32 --dtype float16

Without options it measures the default grid. All options of `profkit sweep` are passed on. The records of all cases
are written to benchmark_results.json, or to the file given by `--results`. In Python it is one call:

    from profkit.sweep import run_comprehensive_benchmark
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the project's root, from any working directory

RESULTS = "benchmark_results.json"


def main(arguments: Sequence[str]) -> None:
    """Run `profkit sweep` with these options; exit with its exit code."""
    from profkit.cli import main as profkit

    words = list(arguments)
    named = any(word == "--results" or word.startswith("--results=") for word in words)
    if not named and "--help" not in words:
        words = ["--results", RESULTS, *words]
    sys.argv = ["profkit", "sweep", *words]
    profkit()


if __name__ == "__main__":
    main(sys.argv[1:])
