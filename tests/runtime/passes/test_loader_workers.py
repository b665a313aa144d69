"""How often torch's loaders start their workers: counted in a process, read, and said."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.core.types import (
    CodeSpot,
    GpuLine,
    GpuTrace,
    Hotspot,
    Insight,
    Kernel,
    KernelTime,
    LineCode,
    LineSamples,
    Place,
    Profile,
    RunDocument,
    SampledTime,
)
from profkit.profilers.host.loader_workers import read_started_workers
from tests import documents, gpu_documents

# What torch's loader does with its workers, without any: the real one is in tests/answers/costly/processes.yaml.
MODULE = """
class DataLoader:
    def __init__(self, count, workers, keep=False):
        self.count, self.num_workers, self.persistent_workers, self.iterator = count, workers, keep, None
    def __iter__(self):
        if self.persistent_workers and self.iterator is not None:
            self.iterator.reset()
            return self.iterator
        self.iterator = _MultiProcessingDataLoaderIter(self)
        return self.iterator

class _MultiProcessingDataLoaderIter:
    def __init__(self, loader):
        self.loader, self._shutdown, self._num_yielded = loader, False, 0
    def reset(self):
        self._num_yielded = 0
    def __iter__(self):
        return self
    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        return data
    def _next_data(self):
        if self._num_yielded == self.loader.count:
            if not self.loader.persistent_workers:
                self._shutdown_workers()
            raise StopIteration
        return self._num_yielded
    def _shutdown_workers(self):
        self._shutdown = True
    def __del__(self):
        self._shutdown_workers()
"""
PROGRAM = """
import os, sys
sys.path.append(os.path.abspath("site-packages"))
import loaders
from profkit.runtime.passes.host.stacks.loader_workers import LoaderWorkers

counts = LoaderWorkers(sys.argv[1])
counts.start(loaders)

def epoch(loader):
    return sum(batch for batch in loader)

def main(kind):
    loader = loaders.DataLoader(4, 2, keep=kind == "kept")
    for _ in range(3):
        if kind == "anew":
            loader = loaders.DataLoader(4, 2)
        assert epoch(loader) == 6
    if kind == "forks" and os.fork() == 0:
        epoch(loader)
        counts.finish()
        os._exit(0)

main(sys.argv[2])
if sys.argv[2] == "forks":
    os.wait()
counts.finish()
"""
LINE = 1 + PROGRAM.splitlines().index("    return sum(batch for batch in loader)")


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("ended", [[3, 2, 2, 12]]),  # passes, over a loader that had one before, workers, batches
        ("anew", [[3, 0, 2, 12]]),
        ("kept", [[1, 0, 2, 0]]),
        ("forks", [[1, 1, 2, 4], [3, 2, 2, 12]]),  # each process counts its own
    ],
)
def test_the_passes_that_start_workers_are_counted_by_the_line_that_begins_them(
    tmp_path: Path, kind: str, rows: list[list[int]]
) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "loaders.py").write_text(MODULE)
    (tmp_path / "program.py").write_text(PROGRAM)
    out = tmp_path / "stacks.jsonl"
    command = [sys.executable, "program.py", str(out), kind]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    lines = (tmp_path / "stacks.jsonl.operations").read_text().splitlines()
    said = [row for line in lines for row in json.loads(line)["workers"]]
    assert [row[3:7] for row in said] == rows
    for file, line, function, *_ in said:
        assert (file, line) == (str(tmp_path / "program.py"), LINE)
        assert function in ("epoch", "<genexpr>")  # whichever asks for the iterator


@pytest.mark.parametrize("odd", [[], [1] * 9, ["a.py", 3, "f", -1, 0, 2, 4, 1, 1, 1], None, [["a.py"]]])
def test_a_row_of_another_program_is_passed_over(tmp_path: Path, odd: Any) -> None:
    right = ["a.py", 64, "run_epoch", 17, 16, 8, 272, 1_400_000, 500_000, 300_000]
    path = tmp_path / "stacks.jsonl.operations"
    path.write_text(f"{json.dumps({'workers': [odd]})}\n{{\n{json.dumps({'workers': [right]})}\n")
    found = read_started_workers(path)
    assert found is not None
    (spot,) = found.hotspots
    assert (spot.own, spot.total, spot.calls) == (pytest.approx(1.7), pytest.approx(2.2), 17)
    assert spot.counters == {"again": 16, "workers": 8, "batches": 272}
    assert read_started_workers(tmp_path / "none") is None


# ------------------------------------------------------------ what is made of them

PLACE = Place(function="run_epoch", file="/app/leaf_classify.py", line=64)
LOADS = LineCode("for images, labels in loader:", 64)


def counted(
    passes: int = 17, own: float = 1.4, total: float = 1.9, again: int = 16, batches: int = 272
) -> tuple[Profile, ...]:
    counts = {"again": float(again), "workers": 8.0, "batches": float(batches)}
    row = Hotspot("run_epoch", own, total, passes, PLACE.file, 64, counters=counts)
    return (Profile("workers that were started", "s", own, (row,), "started-workers"),)


def on_gpu(profiles: tuple[Profile, ...]) -> RunDocument:
    """The trace of leaf_classify on an H200: idle for 93 % of 4.7 s, workers of 17 epochs of 16 batches."""
    kernel = KernelTime(Kernel("cutlass_tensorop_bf16", (8, 18, 3), (128, 1, 1)), 42_138, 0.3)
    lines = (GpuLine(PLACE.file or "", 71, "run_epoch", 270, 0.9, 20_000),)
    trace = GpuTrace(
        "nsys", (kernel,), span=4.69, busy=0.34, launches=42_138, repeats=270, starved=0.98, lines=lines,
        line_span=4.69, lines_of=4.69,
    )  # fmt: skip
    seen = LineSamples("run_epoch", PLACE.file or "", 64, 1.0, 1.0, code=LOADS)
    document = gpu_documents.report(trace=trace, sampled=(SampledTime(10.5, 10.5, lines=(seen,)),))
    return replace(document, profiles=profiles)


def on_cpu(profiles: tuple[Profile, ...]) -> RunDocument:
    spot = CodeSpot(0.5, 2.3, "input", PLACE, code=LOADS)
    sampled = (SampledTime(4.69, 4.69, lines=(LineSamples("run_epoch", PLACE.file or "", 64, 2.3, 1.0),)),)
    return replace(documents.empty(), hot_spots=(spot,), sampled=sampled, profiles=profiles)


def restarted(document: RunDocument) -> list[Insight]:
    return [one for one in find_insights(document) if one.rule == "restarted-workers"]


@pytest.mark.parametrize("run", [on_gpu, on_cpu])
def test_workers_that_each_short_epoch_starts_are_to_stay(run: Any) -> None:
    (found,) = restarted(run(counted()))
    assert found.title == "Keep the DataLoader's workers: they are started 17 times, once for each pass"
    assert "each pass starts 8 of them for 16 batches" in found.evidence
    assert "takes 82.4 ms, 30 % of the time in all" in found.evidence
    assert found.change.startswith("DataLoader(..., persistent_workers=True)")
    assert found.where.line == 64
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(1.9 / 4.69 * 16 / 17)


@pytest.mark.parametrize("run", [on_gpu, on_cpu])
def test_a_loader_that_is_made_for_each_pass_is_to_be_made_once(run: Any) -> None:
    (found,) = restarted(run(counted(again=0)))
    assert found.change.startswith("Make the DataLoader once, before the loop")


@pytest.mark.parametrize("run", [on_gpu, on_cpu])
@pytest.mark.parametrize(
    "profiles",
    [
        (),  # no loader with workers
        counted(passes=1, again=0),  # they stay, or there is one epoch
        counted(own=0.2, total=1.9),  # long epochs: starting takes 4 %
    ],
)
def test_workers_that_are_started_seldom_or_fast_are_left(run: Any, profiles: tuple[Profile, ...]) -> None:
    assert restarted(run(profiles)) == []


def test_the_device_is_said_to_wait_for_no_longer_than_it_is_idle() -> None:
    document = on_gpu(counted())
    assert document.trace is not None
    busy = replace(document, trace=replace(document.trace, busy=3.75, starved=1.0))
    (found,) = restarted(busy)
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.2, abs=0.01)
    assert restarted(replace(busy, trace=replace(document.trace, busy=4.5))) == []
