"""What `profkit compare` says of every pair of runs of one program, where nothing was changed between them.

    python -m tests.performance.equal_pairs runs/*/mlp/*-cuda
    python -m tests.performance.equal_pairs runs/*/mlp/*-cuda --slower 10

Each pair is compared in both orders. `--slower` makes the samples of the candidate, and the time of its kernels, so
many per cent longer than they were: how many such pairs are then called DIFFERENT. Prints the medians' spread from
process to process, which is what `profkit/regression/compare/pairs.py` holds, how the words fell, and how wide
the intervals were.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from itertools import permutations
from math import log
from pathlib import Path
from statistics import median, stdev

from profkit.core.types import RunDocument
from profkit.profiling.summarize import summarize_report
from profkit.regression.compare import compare


def slower(document: RunDocument, by: float) -> RunDocument:
    """The run as if all of its samples, and the sum of its kernels, had been longer."""
    timings = tuple(
        replace(t, processes=tuple(replace(p, seconds=tuple(s * by for s in p.seconds)) for p in t.processes))
        for t in document.timings
    )
    readings = tuple(
        replace(r, value=r.value * by) if r.metric == "time.gpu" and r.value is not None else r
        for r in document.readings
    )
    return replace(document, timings=timings, readings=readings, summaries=())


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("runs", nargs="+", type=Path)
    options.add_argument("--slower", type=float, default=0.0, help="per cent")
    asked = options.parse_args()
    documents = [summarize_report(path) for path in asked.runs]
    medians = [log(median(p.seconds)) for d in documents for t in d.timings for p in t.processes if p.seconds]
    print(
        f"{len(documents)} runs, {len(medians)} processes; from one to the next {100 * stdev(medians):.2f} %"
    )
    words: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    widths = []
    for before, after in permutations(documents, 2):
        found = compare(before, slower(after, 1 + asked.slower / 100))
        outcomes[found.outcome] += 1
        for change in found.changes:
            if change.metric == "time.median":
                words[change.word] += 1
                if change.low and change.high:
                    widths.append(100 * ((change.high / change.low) ** 0.5 - 1))
    print(f"times: {dict(words)}")
    print(f"outcomes: {dict(outcomes)}")
    if widths:
        print(f"half of an interval: {min(widths):.1f} to {max(widths):.1f} %, median {median(widths):.1f} %")


if __name__ == "__main__":
    main()
