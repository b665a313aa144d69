"""Where the wall time went, and what the rules on the processor's side conclude of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.insights import find_insights
from profkit.analysis.insights.time_split import time_split
from profkit.analysis.stacks.python_code import is_users_code
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


def test_a_program_that_waits_is_told_what_for() -> None:
    found = insights(run(own_time(SLEEP), split=TimeSplit(10.0, waiting=9.0, cpu=1.0)))["waiting-program"]
    assert "sleep" in found.title
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("function", "word"),
    [
        ("<method 'recv' of '_socket.socket' objects>", "network"),
        ("<method 'acquire' of '_thread.lock' objects>", "lock"),
        ("<method 'poll' of 'select.epoll' objects>", "event loop"),
        ("<built-in method posix.waitpid>", "child"),
    ],
)
def test_the_call_that_waits_says_what_is_waited_for(function: str, word: str) -> None:
    split = TimeSplit(10.0, waiting=9.0, cpu=1.0)
    assert word in insights(run(own_time(Hotspot(function, 9.0)), split=split))["waiting-program"].title


@pytest.mark.parametrize(
    "split", [None, TimeSplit(10.0, waiting=1.0), TimeSplit(10.0, waiting=0.0, queued=9.0)]
)
def test_a_program_that_works_or_has_no_processor_does_not_wait(split: TimeSplit | None) -> None:
    assert "waiting-program" not in insights(run(own_time(SLEEP), split=split))


def test_the_hottest_function_of_the_users_own_code_is_named_with_its_line() -> None:
    found = insights(run(own_time(LOOP)))["hot-python-function"]
    assert (found.where.function, found.where.file, found.where.line) == ("collatz", "work/train.py", 12)
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.6)


@pytest.mark.parametrize("hotspot", [SPLIT, SLEEP, replace(LOOP, own=1.0)])
def test_functions_of_packages_and_small_ones_are_nobodys_to_speed_up(hotspot: Hotspot) -> None:
    assert "hot-python-function" not in insights(run(own_time(hotspot)))


def sampled(**shares: float) -> Profile:
    names = {"python": "libpython3.11.so.1.0", "torch": "libtorch_cpu.so", "openmp": "libgomp.so.1"}
    hotspots = tuple(Hotspot(names[name], share, library=names[name]) for name, share in shares.items())
    return Profile("cpu-clock by library", "s", 1.0, hotspots, "libraries")


def test_a_function_whose_operators_run_in_a_library_is_no_slow_python() -> None:
    """cProfile counts `x @ w` of tensors as the function's own time; the samples are in torch."""
    assert "hot-python-function" not in insights(run(own_time(LOOP), sampled(torch=0.95, python=0.02)))
    assert "hot-python-function" in insights(run(own_time(LOOP), sampled(python=0.9)))


def test_where_nobody_sampled_the_advice_is_for_arrays_as_well() -> None:
    document = replace(run(own_time(LOOP)), packages={"numpy": "2.4"})
    found = insights(document)["hot-python-function"]
    assert "Python itself" not in found.title
    assert "whole arrays" in found.change


def test_threads_that_spin_at_barriers_are_too_many() -> None:
    found = insights(run(sampled(openmp=0.94, torch=0.04)))["spinning-threads"]
    assert "OMP_NUM_THREADS" in found.change
    assert found.gain is not None
    assert found.gain.of == "the CPU time"
    assert "spinning-threads" not in insights(run(sampled(openmp=0.1, torch=0.9)))


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


def imports(seconds: float) -> Profile:
    return Profile("imports", "s", seconds, (Hotspot("pandas", seconds, seconds, 1),), "imports")


def test_a_program_that_mostly_loads_modules_is_told_which() -> None:
    found = insights(run(own_time(LOOP), imports(4.0)))["heavy-imports"]
    assert "pandas" in found.title
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.4)


def test_a_module_of_the_program_is_named_from_its_outermost_package() -> None:
    files = (
        "/tmp/copy/tool/src/tool/__init__.py",
        "/tmp/copy/tool/src/tool/parser.py",
        "/tmp/copy/tool/bench.py",
    )
    spots = tuple(Hotspot("<module>", 4.0 - n, 4.0 - n, 1, file, 1) for n, file in enumerate(files))
    found = insights(run(own_time(LOOP), Profile("imports", "s", 4.0, spots, "imports")))["heavy-imports"]
    assert found.title.endswith(": tool")
    assert "imports: tool 4.00 s, tool.parser 3.00 s, bench 2.00 s" in found.evidence


def test_imports_that_take_little_are_none_of_the_problems() -> None:
    assert "heavy-imports" not in insights(run(own_time(LOOP), imports(1.0)))
