"""`profkit.profile`: a part of this process as a run, whatever happens in it."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import profkit
from profkit.fronts.in_process import start, stop
from profkit.fronts.recording import STACKS, _current
from profkit.profiling.api import Run
from profkit.runtime.passes.host.stacks import samples
from tests.conftest import ROOT
from tests.spoken import spoken, spoken_lines
from tests.tries import hold_once

TRACE = ROOT / "tests" / "data" / "cuda" / "torch" / "torch.cuda.json.gz"


def compute(seconds: float) -> int:
    end, count = time.process_time() + seconds, 0
    while time.process_time() < end:
        count += 1  # where the time goes
    return count


LINES = Path(__file__).read_text().splitlines()
HOT = range(LINES.index("def compute(seconds: float) -> int:") + 2, LINES.index("    return count") + 1)


@pytest.mark.timed
def test_the_run_names_the_lines_and_what_they_do(tmp_path: Path) -> None:
    with profkit.profile("part", show=False) as run:
        compute(0.3)
        time.sleep(0.5)  # here
    places = {one.where.function: one for one in run.hot_spots}
    busy = places["compute"]
    assert (busy.kind, busy.where.file) == ("python", __file__)
    assert busy.where.line in HOT
    asleep = next(one for one in run.hot_spots if LINES[(one.where.line or 0) - 1].endswith("# here"))
    assert asleep.kind in ("sleep", "waiting")  # on a busy machine nobody may have looked while it slept
    assert sum(one.share for one in run.hot_spots) == pytest.approx(1)
    assert run.insights[0].where.function in ("compute", asleep.where.function)
    document = run.document
    assert [(one.name, one.state) for one in document.passes] == [("stacks", "finished")]
    assert (document.state, document.backend, document.name) == ("complete", "cpu", "part")
    assert {row["metric"] for row in run.rows() if row["value"]} >= {"memory.rss_peak"}
    saved = profkit.load(run.save(tmp_path))
    assert saved.insights == run.insights
    assert (saved.path / "artifacts" / "stacks.speedscope.json").is_file()
    assert "compute" in (saved.path / "report.html").read_text()
    assert "not in the report" not in (saved.path / "report.md").read_text()  # nobody asked for it
    last = json.loads((run.path / STACKS).read_text().splitlines()[-1])
    assert last["cost"] < 0.05 * last["seconds"]


@pytest.mark.thorough
@pytest.mark.timed
def test_one_call_that_never_lets_the_sampler_in_is_a_place_too() -> None:
    count, begun = 1_000_000, time.perf_counter()
    while (
        time.perf_counter() - begun < 0.3
    ):  # too short a part has no places, and Pythons differ by a factor of three
        count, begun = 2 * count, time.perf_counter()
        sum(range(count))
    with profkit.profile(show=False) as run:
        sum(range(count))
    assert run.hot_spots[0].where.file == __file__
    assert run.hot_spots[0].share > 0.9


def in_a_loop(coroutine: Coroutine[Any, Any, object]) -> None:
    """In a thread: a browser of other tests keeps a loop in this one."""
    thread = threading.Thread(target=asyncio.run, args=(coroutine,))
    thread.start()
    thread.join()


@pytest.mark.timed
def test_what_a_loop_that_is_not_the_programs_awaits_is_its_place() -> None:
    """As a notebook's kernel runs a cell: nothing of the program is on the stack of the loop."""
    runs: list[Run] = []

    async def other() -> None:
        await asyncio.sleep(2)

    async def part() -> None:
        task = asyncio.get_running_loop().create_task(other())
        await asyncio.sleep(0)
        with profkit.profile(show=False) as run:
            for _ in range(4):
                await asyncio.sleep(0.15)  # awaited
        task.cancel()
        runs.append(run)

    in_a_loop(part())
    spot = runs[0].hot_spots[0]
    assert (spot.kind, LINES[(spot.where.line or 0) - 1].endswith("# awaited")) == ("await", True)
    assert spot.share > 0.5


def test_nothing_is_left_behind() -> None:
    before = sys.getswitchinterval()
    with profkit.profile(show=False) as run:
        compute(0.02)
    folder = run.path
    assert folder.is_dir()
    assert sys.getswitchinterval() == pytest.approx(before)
    assert "_collected" not in [getattr(one, "__name__", "") for one in gc.callbacks]
    assert not _current
    del run
    gc.collect()
    assert not folder.exists()


ENDS = {"failed": ValueError, "complete": SystemExit, "interrupted": KeyboardInterrupt}


def ended(state: str) -> tuple[Run, BaseException | None]:
    """A part that ends in this way; what came out of it."""
    try:
        with profkit.profile() as run:
            compute(0.3)
            if state == "interrupted":
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            raise ENDS[state]("no")
    except BaseException as error:
        return run, error
    return run, None


@pytest.mark.parametrize("state", ENDS)
def test_however_the_part_ends_its_page_is_there_and_the_end_passes_through(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, error = ended(state)
    assert type(error) is ENDS[state]
    assert run.document.state == state
    assert run.document.failure == ("ValueError: no" if state == "failed" else None)
    captured = capsys.readouterr()
    assert "Where the time goes" in captured.err
    assert "compute" in captured.err
    assert captured.out == ""


def test_a_second_one_samples_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    outer = start("outer")
    inner = stop(start("inner"))
    compute(0.3)
    assert "outer is already being sampled in this process" in spoken_lines(inner.document.notes)[0]
    assert inner.document.passes[0].state == "skipped"
    assert stop(outer).hot_spots
    monkeypatch.setenv("PROFKIT_DIRECTIVE", "{}")
    assert "`profkit profile` already samples this program" in spoken(stop(start("under")).document.notes[0])


DECORATED = """
import time, profkit
from tests.fronts.test_in_process import compute

@profkit.profile
def often():
    compute(0.002)

@profkit.profile("in threes", every=3)
def rarely():
    compute(0.05)
    often()

for number in range(150):
    often()
    time.sleep(0.001)
    if number % 30 == 0:
        rarely()
print("the end of the program", flush=True)
"""


@pytest.mark.thorough
@pytest.mark.timed
def test_calls_of_a_decorated_function_add_up_to_one_page_at_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DECORATED],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    during, _, after = done.stdout.partition("the end of the program\n")
    assert during.count("Where the time goes") == 1
    assert during.startswith("in threes on cpu\n")
    assert " in 3 calls, " in during
    rest, often = sorted(after.split("often on cpu\n"), key=len)
    assert "in 2 calls, " in rest or "in 2 calls, " in often  # those after the third
    taken = re.search(r"Took +([\d.]+) (ms|s) in 150 calls, ", after)
    assert taken is not None  # and not the five that rarely made
    assert (
        float(taken[1]) * (0.001 if taken[2] == "ms" else 1) >= 0.2
    )  # a fast machine takes less than 2 ms for each
    assert re.search(r"compute +test_in_process\.py:\d+", " ".join(after.split()))


@pytest.mark.thorough
@pytest.mark.timed
def test_what_runs_between_the_calls_of_a_decorated_function_is_no_part_of_its_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def between() -> None:
        end = time.process_time() + 0.01
        while time.process_time() < end:
            pass

    @profkit.profile("calls", every=30)
    def called() -> None:
        compute(0.01)

    def attempt() -> None:
        for _ in range(30):
            between()
            called()
        page = capsys.readouterr().err
        assert "calls on cpu" in page
        assert "compute" in page
        assert "between" not in page
        assert not _current

    hold_once(attempt)


def test_between_the_calls_of_a_decorated_function_a_block_is_profiled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @profkit.profile("calls", every=2)
    def called() -> None:
        compute(0.05)

    called()
    with profkit.profile(show=False) as run:
        compute(0.3)
        called()  # a part of the block, and not counted
    assert run.hot_spots[0].where.function == "compute"
    called()
    page = capsys.readouterr().err
    assert " in 2 calls, " in page
    assert not _current


def test_a_decorated_coroutine_is_profiled_and_what_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @profkit.profile("waiting", every=1)
    async def waiting() -> None:
        await asyncio.sleep(0.1)

    in_a_loop(waiting())
    assert "waiting on cpu" in capsys.readouterr().err
    with pytest.raises(TypeError, match="put `with profkit"):
        profkit.profile(lambda: (yield))
    with pytest.raises(ValueError, match="every=0 is not a number of calls"):
        profkit.profile(every=0)


@pytest.mark.thorough
def test_a_row_of_a_with_statement_says_what_it_enters_and_not_contextlib(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows of tests with subtests were `runs: contextlib`."""
    case = unittest.TestCase()
    case._outcome = unittest.case._Outcome()  # type: ignore[attr-defined]  # as while a test runs
    with profkit.profile() as run:
        for number in range(600_000):  # half a second on a fast machine
            with case.subTest(number=number):
                pass
    assert "contextlib" not in capsys.readouterr().err
    assert run.hot_spots[0].code is not None
    assert run.hot_spots[0].code.text.startswith("with case.subTest(")


def test_calls_that_overlap_have_no_time_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Three threads of 0.1 s at a time were `3 calls, 33 ms each`."""

    @profkit.profile("beside", every=3)
    def beside(count: int) -> None:
        time.sleep(0.1)
        if count:
            beside(count - 1)

    threads = [threading.Thread(target=beside, args=(0,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    beside(2)
    pages = capsys.readouterr().err
    assert pages.count(" in 3 calls, some of them within or beside another") == 2
    assert " each" not in pages


def test_a_forked_child_is_part_of_the_run_and_shows_no_page_of_its_own(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with profkit.profile() as run:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        else:
            compute(0.4)
    if not child:
        os._exit(0)
    assert run.path.is_dir()
    spot = next(one for one in run.hot_spots if one.where.function == "compute")
    assert spot.processes == 1
    assert spot.share > 0.5
    assert capfd.readouterr().err.count("Where the time goes") == 1


@pytest.fixture
def torch_on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that writes what torch recorded on a GPU."""
    written = gzip.decompress(TRACE.read_bytes())
    trace = SimpleNamespace(start=lambda: None, stop=lambda: None)
    trace.export_chrome_trace = lambda path: Path(path).write_bytes(written)
    cuda = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, device_count=lambda: 0)
    cuda.is_current_stream_capturing, cuda._lazy_call = lambda: False, lambda call: call()
    profiler = SimpleNamespace(ProfilerActivity=SimpleNamespace(CUDA="cuda", CPU="cpu"))
    profiler.supported_activities, profiler.profile = lambda: {"cuda"}, lambda **_: trace
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, profiler=profiler))


@pytest.mark.usefixtures("torch_on_gpu")
@pytest.mark.parametrize(("calls", "said"), [(1, False), (3, True)])
def test_of_a_functions_calls_it_is_said_that_the_kernels_are_those_of_the_first(
    calls: int, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    step = profkit.profile("step", every=calls)(lambda: compute(0.05))
    for _ in range(calls):
        step()
    page = " ".join(capsys.readouterr().err.split())
    assert " on cuda" in page
    assert ("The kernels are those of the first of 3 calls" in page) == said


@pytest.mark.usefixtures("torch_on_gpu")
def test_where_torch_uses_a_gpu_its_kernels_are_in_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    with profkit.profile() as run:
        compute(0.05)
    assert [one.name for one in run.document.passes] == ["stacks", "trace"]
    assert run.document.backend == "cuda"
    assert run.document.trace is not None
    assert run.document.trace.kernels
    assert " on cuda" in capsys.readouterr().err


@pytest.mark.timed
def test_what_begins_while_a_sample_is_taken_is_not_taken_for_what_was_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To ask what a thread waits for gives the interpreter away: the main thread may go on within a sample."""
    asked, over = threading.Event(), threading.Event()
    waiting = threading.Thread(target=over.wait)
    waiting.start()  # looked at before the main thread

    def spin() -> None:
        end = time.monotonic() + 60
        while not asked.is_set():
            assert time.monotonic() < end

    def waits_for(native: int, calls: object) -> str:
        if native != threading.main_thread().native_id and not asked.is_set():
            asked.set()
            time.sleep(0.05)
        return "sleep"

    monkeypatch.setattr(samples, "waits_for", waits_for)
    with profkit.profile(show=False) as run:
        spin()
        time.sleep(0.6)  # after it
    over.set()
    waiting.join()
    longest = max(run.hot_spots, key=lambda one: one.share)
    assert LINES[(longest.where.line or 0) - 1].endswith("# after it")
    assert longest.share > 0.6
