"""Where the wall time went, and what the rules on the processor's side conclude of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.stacks.python_code import is_users_code
from profkit.analysis.summaries.host import time_split
from profkit.core.types import Hotspot, Insight, Profile, RunDocument, TimeSplit
from tests import documents


def looks(*parts: tuple[float, float, float], step: float = 0.25) -> list[tuple[float, float, float]]:
    """Looks at a process: of each part its seconds, how much of them it worked, and how much it queued (0..1)."""
    rows, now, cpu, queued = [], 0.0, 0.0, 0.0
    for seconds, works, queues in parts:
        for _ in range(round(seconds / step)):
            now, cpu, queued = now + step, cpu + works * step, queued + queues * step
            rows.append((now, cpu, queued))
    return rows


def split_of(*parts: tuple[float, float, float]) -> TimeSplit:
    split = time_split(looks(*parts))
    assert split is not None
    return split


def test_a_program_that_sleeps_waits_all_the_time() -> None:
    split = split_of((45.0, 0.0, 0.0))
    assert split.waiting == pytest.approx(45.0)
    assert split.threads is None


def test_sleep_and_work_are_told_apart() -> None:
    split = split_of((3.0, 0.0, 0.0), (1.0, 1.0, 0.0))
    assert split.waiting == pytest.approx(3.0)
    assert split.threads == pytest.approx(1.0)


def test_a_thread_that_has_no_processor_does_not_wait_for_anything_else() -> None:
    split = split_of((4.0, 0.25, 0.75))
    assert split.waiting == pytest.approx(0.0)
    assert split.queued == pytest.approx(3.0)


def test_several_threads_at_once_hide_no_waiting_of_another_time() -> None:
    split = split_of((2.0, 4.0, 0.0), (2.0, 0.0, 0.0))
    assert split.waiting == pytest.approx(2.0)
    assert split.threads == pytest.approx(4.0)


def test_what_the_kernels_coarse_clock_misses_is_no_waiting() -> None:
    assert split_of((10.0, 0.97, 0.0)).waiting == 0.0


def test_without_a_look_nothing_is_said() -> None:
    assert time_split([]) is None
    short = time_split([(0.02, 0.0, 0.0), (0.2, 0.004, 0.0)])
    assert short is not None
    assert (short.waiting, short.queued, short.threads) == (None, None, None)  # it may have stood in a queue


# ---------------------------------------------------------------- rules


def own_time(*hotspots: Hotspot, total: float = 10.0) -> Profile:
    return Profile("own time by function", "s", total, hotspots, "own-time")


SLEEP = Hotspot("<built-in method time.sleep>", 9.0, calls=90)
LOOP = Hotspot("collatz", 6.0, calls=1000, file="work/train.py", line=12)
SPLIT = Hotspot("read_csv", 6.0, calls=1, file="/venv/lib/python3.11/site-packages/pandas/io.py", line=5)


def insights(document: RunDocument) -> dict[str, Insight]:
    return {insight.rule: insight for insight in find_insights(document)}


def run(*profiles: Profile, split: TimeSplit | None = None) -> RunDocument:
    return replace(documents.empty(), profiles=profiles, time_split=split)


def sampled(**shares: float) -> Profile:
    names = {"python": "libpython3.11.so.1.0", "torch": "libtorch_cpu.so", "openmp": "libgomp.so.1"}
    hotspots = tuple(Hotspot(names[name], share, library=names[name]) for name, share in shares.items())
    return Profile("cpu-clock by library", "s", 1.0, hotspots, "libraries")


def test_that_fewer_threads_would_be_faster_is_not_said_without_a_trial() -> None:
    assert insights(run(sampled(openmp=0.94, torch=0.04))) == {}


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("train.py", True),
        ("<string>", True),
        ("<frozen importlib._bootstrap>", False),
        ("/usr/lib/python3.11/json/decoder.py", False),
        ("/venv/lib/python3.11/site-packages/numpy/core.py", False),
        (None, False),
        ("~", False),
    ],
)
def test_whose_python_file_it_is(file: str | None, users: bool) -> None:
    assert is_users_code(file) is users


@pytest.mark.parametrize(
    ("function", "users"),
    [
        ("<module>", True),
        ("work", True),
        ("__create_fn__.<locals>.__init__", False),
        ("__init__", False),
        ("<lambda>", False),
    ],
)
def test_methods_that_dataclasses_make_are_nobodys_code(function: str, users: bool) -> None:
    assert is_users_code("<string>", function) is users
