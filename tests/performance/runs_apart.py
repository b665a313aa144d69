"""What `profkit compare` says of two runs that were recorded apart: of one program, and of one that is slower.

    python -m tests.performance.runs_apart record FOLDER --pairs 10
    python -m tests.performance.runs_apart record FOLDER-busy --pairs 10 --neighbours 2
    python -m tests.performance.runs_apart judge FOLDER

The program is a loop of Python's of about 0.1 s; the slower one does 10 % more of it. For each pair three runs are
recorded: the program, the program again, and the slower one; the last two are the pair that differs. `--neighbours`:
beside about every second run so many busy loops take what they get. The folder keeps the runs, and what the machine
learns of itself (XDG_CACHE_HOME). `judge` prints how the words fell: without what the runs say of the machine's spread
and of others beside them, with it as each run knew it, and as it is known at the end; and all that once more as if the
others had come only after the look at the machine that each run begins with.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import exp
from multiprocessing import Process
from pathlib import Path
from statistics import median

from profkit.core.types import RunDocument
from profkit.hardware.run_spread import kept_spread
from profkit.profiling.summarize import summarize_report
from profkit.regression.compare import compare

STEPS = 1_100_000
PROGRAM = """\
total = 0
for step in range({steps}):
    total += step * step % 7
"""
KINDS = ("first", "again", "slower")
PAIRS = {("first", "again"): "one program", ("again", "slower"): "10 % slower"}


def spin() -> None:
    """Take a core."""
    while True:
        pass


def record(folder: Path, pairs: int, neighbours: int, sampling: float, seed: int) -> None:
    """Three runs for each pair, one after the other."""
    source = random.Random(seed)
    for name, steps in (("before", STEPS), ("after", round(1.1 * STEPS))):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "program.py").write_text(PROGRAM.format(steps=steps))
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder.resolve() / "cache")}
    for number in range(pairs):
        for kind in KINDS:
            busy = neighbours > 0 and source.random() < 0.5
            beside = [Process(target=spin, daemon=True) for _ in range(neighbours if busy else 0)]
            for process in beside:
                process.start()
            try:
                place = folder.resolve() / "runs" / f"{number:02d}-{kind}"
                words = ("--passes", "timing", "--sampling", str(sampling), "--quiet", "--output", str(place))
                argv = (
                    sys.executable,
                    "-m",
                    "profkit",
                    "profile",
                    *words,
                    "--",
                    sys.executable,
                    "program.py",
                )
                where = folder / ("after" if kind == "slower" else "before")
                subprocess.run(argv, cwd=where, env=environ, check=True, stdout=subprocess.DEVNULL)
            finally:
                for process in beside:
                    process.kill()
                    process.join()
            print(f"pair {number + 1} of {pairs}: {kind}{', busy' if busy else ''}", flush=True)


def without_machine(document: RunDocument) -> RunDocument:
    """The run as if it said nothing of how far runs lie apart here, and of others while it was timed."""
    assert document.machine is not None
    machine = replace(document.machine, virtual=None)
    return replace(document, machine=machine, disturbances=(), run_spread=None)


def without_look(document: RunDocument) -> RunDocument:
    """The run as if whoever disturbed it had come after the look at the machine that is taken before."""
    return replace(document, moments=())


def judge(folder: Path) -> None:
    """Print the words."""
    os.environ["XDG_CACHE_HOME"] = str(folder.resolve() / "cache")
    documents = {
        path.parent.parent.name: summarize_report(path.parent)
        for path in sorted(folder.glob("runs/*/*/run.json"))
    }
    numbers = sorted({name.partition("-")[0] for name in documents})
    first = documents[f"{numbers[0]}-first"]
    assert first.machine is not None
    known = kept_spread(first.machine)
    medians = {
        kind: [median(documents[f"{n}-{kind}"].timings[0].processes[0].seconds) for n in numbers]
        for kind in KINDS
    }
    for kind, values in medians.items():
        print(f"{kind:7} {min(values):.3f} to {max(values):.3f} s")
    if known is not None:
        print(
            f"{known.trials} pairs of equal runs: rms {exp(known.rms):.2f}, largest {exp(known.largest):.2f} times"
        )
    views: dict[str, Callable[[RunDocument], RunDocument]] = {
        "without": without_machine,
        "with": lambda document: document,
        "with, as the machine is known at the end": lambda document: replace(document, run_spread=known),
    }
    equal = [documents[f"{number}-{kind}"] for number in numbers for kind in ("first", "again")]
    groups = {
        truth: [(documents[f"{n}-{before}"], documents[f"{n}-{after}"]) for n in numbers]
        for (before, after), truth in PAIRS.items()
    }
    groups["one program, every two runs in both orders"] = list(permutations(equal, 2))
    for seen, look in (("others seen before the run", lambda document: document), ("not seen", without_look)):
        print(f"{seen}:")
        for title, view in views.items():
            for truth, pairs in groups.items():
                words: Counter[str] = Counter()
                for pair in pairs:
                    found = compare(*(view(look(document)) for document in pair))
                    (change,) = (c for c in found.changes if c.metric == "time.median")
                    words[change.word if change.word != "different" else f"DIFFERENT, {change.course}"] += 1
                print(f"  {title}: {truth}: {dict(words)}")


def main() -> None:
    """Record or judge."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", choices=("record", "judge"))
    options.add_argument("folder", type=Path)
    options.add_argument("--pairs", type=int, default=10)
    options.add_argument("--neighbours", type=int, default=0)
    options.add_argument("--sampling", type=float, default=3.0)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    if asked.what == "record":
        record(asked.folder, asked.pairs, asked.neighbours, asked.sampling, asked.seed)
    judge(asked.folder)


if __name__ == "__main__":
    main()
