"""Rules on waiting, threads, processes and input and output. Values are of real programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.insights import find_insights
from profkit.core.types import CodeLine, Frame, Hotspot, Insight, Profile, ProfileKind, TimeSplit
from tests import documents

ASYNCIO = "/usr/lib/python3.11/asyncio/tasks.py"
QUEUES = "/usr/lib/python3.11/multiprocessing/queues.py"
SLEEP, POLL = "<built-in method time.sleep>", "<method 'poll' of 'select.epoll' objects>"


def profile(kind: ProfileKind, total: float, *hotspots: Hotspot) -> Profile:
    return Profile(kind, "s", total, hotspots, kind)


def calls(total: float, *edges: tuple[str, str, float, int]) -> Profile:
    """Calls of caller and callee with seconds and number; `asyncio.f` and `own.f` are no built-ins."""
    files = {"asyncio": ASYNCIO, "own": "p.py"}
    spots = []
    for caller, callee, seconds, count in edges:
        package, _, name = (
            callee.partition(".") if callee.startswith(("asyncio.", "own.")) else ("", "", callee)
        )
        frame = Frame(name, None if package else "built-in", files.get(package))
        spots.append(Hotspot(caller, seconds, seconds, count, "p.py", 3, callee=frame))
    return profile("program-calls", total, *spots)


def insights(split: TimeSplit | None, *profiles: Profile) -> dict[str, Insight]:
    found = find_insights(replace(documents.empty(), profiles=profiles, time_split=split))
    return {insight.rule: insight for insight in found}


def line(function: str, number: int, waiting: float, main: float = 0.0, own: float = 0.0) -> Hotspot:
    return Hotspot(
        function, own, own, file="p.py", line=number, counters={"waiting": waiting, "main_waiting": main}
    )


WAITS = TimeSplit(2.75, waiting=2.47, cpu=0.1, threads=1.0)
OWN_POLL = profile("own-time", 2.51, Hotspot(POLL, 2.42), Hotspot("_run_once", 0.01, file=ASYNCIO))


def test_what_is_awaited_one_after_the_other_is_named_with_the_function_that_does_so() -> None:
    edges = calls(2.51, ("main", "own.fetch", 0.004, 120), ("fetch", "asyncio.sleep", 0.003, 120))
    found = insights(WAITS, OWN_POLL, edges)["waiting-program"]
    assert "one thing after the other" in found.title
    assert found.where.function == "main"
    assert "gather" in found.change


def test_tasks_side_by_side_are_not_one_after_the_other() -> None:
    edges = calls(2.51, ("main", "asyncio.gather", 0.004, 1), ("fetch", "asyncio.sleep", 0.003, 120))
    assert "event loop" in insights(WAITS, OWN_POLL, edges)["waiting-program"].title


def test_a_call_that_blocks_the_event_loop_is_told_instead_of_the_sleep() -> None:
    own = profile("own-time", 2.6, Hotspot(SLEEP, 2.42), Hotspot("_run_once", 0.01, file=ASYNCIO))
    found = insights(WAITS, own, calls(2.6, ("query", SLEEP, 2.42, 80)))
    assert found["blocked-event-loop"].where.function == "query"
    assert "waiting-program" not in found


def test_a_sleep_without_an_event_loop_blocks_none() -> None:
    found = insights(
        WAITS, profile("own-time", 2.6, Hotspot(SLEEP, 2.42)), calls(2.6, ("query", SLEEP, 2.42, 80))
    )
    assert "blocked-event-loop" not in found
    assert found["waiting-program"].where.function == "query"


def test_threads_that_wait_for_a_lock_are_found_at_its_line_and_not_where_they_are_joined() -> None:
    own = profile("own-time", 2.0, Hotspot("<method 'acquire' of '_thread.lock' objects>", 1.98))
    lines = profile(
        "sampled-lines", 0.04, line("<module>", 11, 1.98, 1.98), line("work", 7, 1.97), line("work", 6, 9.26)
    )
    found = insights(WAITS, own, lines)["waiting-program"]
    assert "a lock" in found.title
    assert (found.where.function, found.where.line) == ("work", 6)


def thread(name: str, seconds: float, first: bool = True) -> Hotspot:
    return Hotspot(name, seconds, 3.3, counters={"threads": 1.0, "first_process": float(first)})


WORKS = TimeSplit(2.84, waiting=0.45, queued=0.94, cpu=1.45, threads=1.0)
FOUR = [thread(f"Thread-{n} (primes)", seconds) for n, seconds in enumerate((0.17, 0.28, 0.30, 0.35), 1)]
PRIMES = Hotspot("primes", 1.09, file="p.py", line=2, lines=(CodeLine("primes", "p.py", 5, 0.7),))


def test_threads_that_compute_in_python_wait_for_its_lock() -> None:
    threads = profile("sampled-threads", 1.1, *FOUR, thread("main", 0.002))
    found = insights(WORKS, threads, profile("sampled-functions", 1.1, PRIMES))["interpreter-lock"]
    assert "4 threads" in found.evidence
    assert (found.where.function, found.where.line) == ("primes", 5)


@pytest.mark.parametrize(
    ("split", "threads"),
    [
        (replace(WORKS, threads=1.9), FOUR),  # they run side by side
        (replace(WORKS, waiting=2.0), FOUR),
        (WORKS, [thread("main", 1.05), thread("Thread-1", 0.05)]),
        (WORKS, [thread("main", 0.6), thread("main", 0.5, first=False)]),  # processes
        (WORKS, [thread("Thread-1", 1.0), thread("main", 0.12)]),  # one does nearly all
        # of a pool of processes, which hand over
        (WORKS, [thread(f"Thread-{n} (_handle_{n})", 0.4) for n in ("tasks", "results")] + FOUR[:1]),
    ],
)
def test_one_thread_that_works_or_several_processes_wait_for_no_lock(
    split: TimeSplit, threads: list[Hotspot]
) -> None:
    assert "interpreter-lock" not in insights(split, profile("sampled-threads", 1.1, *threads))


def sampled(*parts: tuple[str, str, float]) -> Profile:
    return profile(
        "sampled-functions", 2.37, *(Hotspot(name, own, own, file=file, line=3) for name, file, own in parts)
    )


def test_a_pool_that_hands_over_more_than_it_works_gets_larger_pieces() -> None:
    found = insights(None, sampled(("Connection._recv", QUEUES, 0.92), ("collatz", "p.py", 0.32)))[
        "small-tasks"
    ]
    assert "collatz" in found.evidence
    assert "chunksize" in found.change


def test_a_pool_whose_work_takes_the_time_is_left_alone() -> None:
    assert "small-tasks" not in insights(
        None, sampled(("Connection._recv", QUEUES, 0.2), ("collatz", "p.py", 2.0))
    )


BYTES = TimeSplit(
    2.26, waiting=0.03, queued=0.0, cpu=2.24, threads=1.0, system=2.01, read=4056612.0, io_calls=4052642
)


def test_the_pipes_of_a_pool_are_told_once_as_small_tasks() -> None:
    found = insights(BYTES, sampled(("Connection._recv", QUEUES, 0.92), ("collatz", "p.py", 0.32)))
    assert "small-tasks" in found
    assert "small-transfers" not in found


def test_reads_of_one_byte_are_told_with_their_number() -> None:
    found = insights(BYTES)["small-transfers"]
    assert "1 B each" in found.evidence or "1.00 B each" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(2.01 / 2.26)


@pytest.mark.parametrize(
    "split",
    [
        replace(BYTES, io_calls=400, read=4e9),  # large blocks
        replace(BYTES, io_calls=3000),  # few
        replace(BYTES, system=0.1),  # cheap
        replace(BYTES, io_calls=None, read=None),  # not Linux
    ],
)
def test_large_few_or_cheap_transfers_are_none_of_the_problems(split: TimeSplit) -> None:
    assert "small-transfers" not in insights(split)


def test_a_disk_that_is_waited_for_after_each_line_is_told_with_the_function() -> None:
    found = insights(None, calls(15.3, ("log", "<built-in method posix.fsync>", 14.98, 8000)))
    assert found["repeated-sync"].where.function == "log"
    once = calls(15.3, ("log", "<built-in method posix.fsync>", 14.98, 1))
    assert "repeated-sync" not in insights(None, once)


GROWING = Hotspot(
    "leak.py:3",
    110e6,
    112.8e6,
    776_039,
    "leak.py",
    3,
    counters={"looks": 6, "begin": 0.19, "end": 8.51, "first": 2.86e6},
)


def test_memory_that_grows_all_the_time_is_told_by_line_and_with_no_claim_of_time() -> None:
    found = insights(None, Profile("", "B", 110e6, (GROWING,), "growing-lines"))["growing-memory"]
    assert "at each of 6 looks" in found.evidence
    assert (found.where.file, found.where.line) == ("leak.py", 3)
    assert found.gain is None


def test_of_a_region_each_iteration_is_told() -> None:
    line = replace(GROWING, counters={"iterations": 200, "each": 4096.0})
    found = insights(None, Profile("", "B", 110e6, (line,), "growing-lines"))["growing-memory"]
    assert "each iteration leaves 4.00 KiB behind" in found.evidence


def locked(*shares: tuple[str, str, float]) -> Profile:
    return Profile(
        "", "s", 1.0, tuple(Hotspot(name, own, library=of) for name, of, own in shares), "functions"
    )


MUTEX = (
    ("pthread_mutex_lock@@GLIBC_2.2.5", "libc.so.6", 0.36),
    ("__GI___pthread_mutex_unlock_usercnt", "libc.so.6", 0.25),
)
THREADS = TimeSplit(1.22, waiting=0.16, cpu=0.6, threads=1.0, thread_count=5)


def test_threads_that_take_a_lock_at_each_step_are_told_with_their_function() -> None:
    found = insights(THREADS, locked(*MUTEX, ("work", "mutex", 0.17)))["lock-contention"]
    assert found.where.function == "work"
    assert "5 threads" in found.evidence


def test_locks_of_one_thread_or_of_little_time_are_no_contention() -> None:
    assert "lock-contention" not in insights(replace(THREADS, thread_count=1), locked(*MUTEX))
    assert "lock-contention" not in insights(
        THREADS, locked(("work", "mutex", 0.9), ("pthread_mutex_lock", "libc.so.6", 0.1))
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/usr/lib/python3.11/json/__init__.py", "json.loads"),
        ("/app/.venv/lib/python3.11/site-packages/orjson/api.py", "loads"),  # the package is named beside it
    ],
)
def test_a_function_of_the_standard_library_is_named_with_its_module(file: str, name: str) -> None:
    callee = CodeLine("loads", file, None, 0.9)
    leading = Hotspot("parse", 0.02, 0.95, file="work.py", line=6, lines=(callee,))
    found = insights(
        TimeSplit(1.0, waiting=0.0, cpu=1.0, threads=1.0), profile("sampled-lines", 1.0, leading)
    )
    assert f"Call {name} less often in parse" in found["heavy-library-call"].title


@pytest.mark.parametrize(
    ("spot", "threads"),
    [
        (replace(GROWING, file="<frozen importlib._bootstrap_external>", line=729), 1),  # modules are loaded
        # a pool of 16 threads begins its work: 305 MiB in 21 blocks, each 20 MB that is given back
        (replace(GROWING, own=228.7 * 2**20, total=305.0 * 2**20, calls=21), 17),
    ],
)
def test_the_code_of_modules_and_what_threads_work_on_are_no_leak(spot: Hotspot, threads: int) -> None:
    split = replace(WORKS, thread_count=threads)
    assert "growing-memory" not in insights(split, Profile("", "B", spot.own, (spot,), "growing-lines"))


def on_processors(cores: int, split: TimeSplit, *profiles: Profile) -> dict[str, Insight]:
    empty = documents.empty()
    machine = replace(documents.machine(), cores=cores)
    document = replace(empty, machine=machine, profiles=profiles, time_split=split)
    return {insight.rule: insight for insight in find_insights(document)}


# 16 threads of a pool that hash 20 MB each; 12 threads of a C program that compute; two threads that hash.
HASHES = TimeSplit(0.769, waiting=0.0, cpu=1.399, threads=1.82, runnable=6.63, thread_count=17)
NUMBERS = TimeSplit(1.274, waiting=0.0, cpu=2.413, threads=1.89, runnable=8.93, thread_count=13)
PAIR = TimeSplit(0.659, waiting=0.0, cpu=1.244, threads=1.89, runnable=1.91, thread_count=3)
POOL_LINES = profile(
    "sampled-lines",
    1.363,
    Hotspot("digest", 1.236, 1.236, file="hashes.py", line=7),
    Hotspot(
        "<module>",
        0.0,
        0.011,
        file="hashes.py",
        line=11,
        lines=(CodeLine("Executor.map", "/usr/lib/python3.11/concurrent/futures/_base.py", 608, 0.01),),
    ),
)


def test_more_threads_than_processors_are_told_with_the_line_that_starts_them() -> None:
    found = on_processors(2, HASHES, POOL_LINES)["oversubscribed-threads"]
    assert found.evidence.startswith("6.6 threads could run at a time, and 2 processors ran them")
    assert "17 threads in all" in found.evidence
    assert (found.where.file, found.where.line) == ("hashes.py", 11)
    assert "max_workers=2" in found.change
    assert found.gain is None  # they lose little by it where none waits for another


def test_threads_of_a_compiled_program_are_told_at_the_line_that_computes() -> None:
    counted = Hotspot("work", 8e9, file="numbers.c", line=5, library="numbers", counters={"Ir": 8e9})
    found = on_processors(2, NUMBERS, Profile("", "instructions", 8e9, (counted,), "counted-functions"))
    assert (found["oversubscribed-threads"].where.file, found["oversubscribed-threads"].where.line) == (
        "numbers.c",
        5,
    )


@pytest.mark.parametrize(
    ("cores", "split"),
    [
        (2, PAIR),
        (16, HASHES),
        # torch in four processes beside other programs; 3.77 threads were recorded, raised here above the limit
        (2, TimeSplit(11.303, waiting=0.269, queued=1.511, cpu=9.985, runnable=4.77, thread_count=38)),
        (2, replace(HASHES, runnable=None)),  # not Linux
        (2, replace(HASHES, runnable=2.1, thread_count=64)),  # most of them wait
    ],
)
def test_threads_that_fit_and_a_machine_that_others_use_are_left_alone(cores: int, split: TimeSplit) -> None:
    assert "oversubscribed-threads" not in on_processors(cores, split, POOL_LINES)


def test_threads_that_spin_for_want_of_processors_are_told_once() -> None:
    """Made-up shares of the libraries, with the recorded split of HASHES."""
    spots = (Hotspot("libgomp.so.1", 0.4, library="libgomp.so.1"), Hotspot("libtorch_cpu.so", 0.6))
    found = on_processors(2, HASHES, profile("libraries", 1.0, *spots))
    assert "6.6 threads could run at a time" in found["spinning-threads"].evidence
    assert "oversubscribed-threads" not in found


def test_a_line_known_by_samples_alone_says_what_it_waits_for() -> None:
    """sleepy.py, and a program whose line mostly waits for nothing that is known."""
    waits = {"waiting": 3.0, "main_waiting": 3.0}
    sleeping = Hotspot("wait", 0.0, 0.0, file="p.py", line=5, counters={**waits, "main_waiting.sleep": 2.9})
    found = insights(WAITS, profile("sampled-lines", 0.02, sleeping))["waiting-program"]
    assert found.title == "The program waits for sleep"
    assert "condition" in found.change
    pipe = replace(sleeping, counters={**waits, "main_waiting.pipe": 2.0, "main_waiting.sleep": 0.3})
    assert (
        "another program at a pipe"
        in insights(WAITS, profile("sampled-lines", 0.02, pipe))["waiting-program"].title
    )
    for more in ({}, {"main_waiting.sleep": 0.3}, {"main_waiting.other": 3.0}):
        unknown = replace(sleeping, counters={**waits, **more})
        assert (
            "computes little"
            in insights(WAITS, profile("sampled-lines", 0.02, unknown))["waiting-program"].title
        )


def test_an_event_loop_known_by_samples_alone_is_said_to_wait_for_its_coroutines() -> None:
    """aio.py, which only sleeps: no stack says what a coroutine awaits, and its system calls look like input."""
    waits = {"waiting": 2.408, "main_waiting": 2.408, "main_waiting.input": 2.367}
    inside = (CodeLine("run", "/usr/lib/python3.11/asyncio/runners.py", 190, 0.021),)
    loop = Hotspot("<module>", 0.0, 0.021, file="p.py", line=13, counters=waits, lines=inside)
    found = insights(WAITS, profile("sampled-lines", 0.021, loop))["waiting-program"]
    assert found.title == "The program waits for what its coroutines await"
    assert "asyncio.gather" in found.change
