"""Where a compiled program waits: recorded switches, made-up ones, and programs that run here below perf.

script.waits.txt and switches.waits.txt are one recording: a thread puts 400 items into a queue of 4 and sleeps 1 ms at
a time while it is full, and the main thread waits at a condition variable for what is in it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from profkit.backends.source_lines import source_places, with_text
from profkit.core.types import Place, SampledTime
from profkit.profilers.perf.command import record_argv, script_argv, switches_argv
from profkit.profilers.perf.probe import probe_perf
from profkit.profilers.perf.script import read_script
from profkit.profilers.perf.source_lines import Address, CodeAt, native_lines
from profkit.profilers.perf.switches import SampledWaits, read_switches, wait_kind

DATA = Path(__file__).parents[2] / "data" / "perf"
SCRIPT, SWITCHES = DATA / "script.waits.txt", DATA / "switches.waits.txt"


def places(program: Path, keys: Sequence[Address]) -> Mapping[Address, CodeAt]:
    feeder, reader = CodeAt(Place(function="push", line=14)), CodeAt(Place(function="drain", line=22))
    return {key: feeder if "_M_run" in key[0] or key[0].endswith("push") else reader for key in keys}


def recorded(switches: Path | None = SWITCHES) -> SampledTime:
    read = read_switches(switches) if switches is not None else None
    sampled = native_lines(SCRIPT, Path("/app/feed"), places, read)
    assert sampled is not None
    return sampled


def test_what_the_main_thread_waits_for_is_the_sleep_of_the_thread_that_wakes_it() -> None:
    sampled = recorded()
    first = sampled.waiting[0]
    assert (first.function, first.line, list(first.waits)) == ("push", 14, ["sleep"])
    assert first.main_wall > 0.8 * sampled.span
    assert 80 <= first.waited <= 100  # 400 items, some 4 between two sleeps
    assert 1e-3 < first.each_wait < 1.5e-3
    assert [one.function for one in first.awaited] == ["drain"]
    assert sum(one.main_wall for one in sampled.waiting) <= sampled.span


def test_a_program_without_debug_information_is_told_by_its_functions() -> None:
    sampled = native_lines(SCRIPT, Path("/app/feed"), lambda program, keys: {}, read_switches(SWITCHES))
    assert sampled is not None
    assert all(each.function and each.file is None for each in (*sampled.lines, *sampled.waiting))
    assert any("push" in each.function for each in sampled.waiting)


def test_a_program_that_others_do_the_work_for_has_a_row_for_each_of_them() -> None:
    """A shell script starts them; none of its own frames is in a sample of theirs."""
    sampled = native_lines(SCRIPT, Path("/usr/bin/bash"), lambda program, keys: {})
    assert sampled is not None
    assert [each.function for each in sampled.lines] == ["feed"]


def test_waits_are_in_no_table_of_processor_time() -> None:
    report = read_script(SCRIPT)
    assert report.facts["events"] == "cpu-clock"
    assert [one.title for one in report.stacks] == ["cpu-clock"]
    assert {one.unit for one in report.profiles} == {"s"}
    sampled = recorded()
    assert report.profiles[0].total == pytest.approx(sampled.cpu)
    assert sum(one.main_cpu for one in sampled.lines) <= sampled.cpu


def test_a_recording_without_switches_says_nothing_of_waits() -> None:
    sampled = recorded(None)
    assert (sampled.waiting, sampled.span) == ((), 0.0)
    assert sampled.lines == recorded().lines


def test_a_thread_that_was_preempted_did_not_wait(tmp_path: Path) -> None:
    text = SWITCHES.read_text().replace("SWITCH OUT  ", "SWITCH OUT preempt  ")
    path = tmp_path / "switches.txt"
    path.write_text(text)
    read = read_switches(path)
    assert not read.sampled
    assert all(not one.lengths for one in read.threads.values())


def test_a_thread_alone_is_not_what_it_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "switches.txt"
    path.write_text(
        "7/7 1.000000: context-switches: \n7/7 1.000001: PERF_RECORD_SWITCH OUT\n"
        "7/7 3.000001: PERF_RECORD_SWITCH IN\n8/8 3.100000: cpu-clock: \n"
    )
    read = read_switches(path)
    assert read.sampled == {(b"7", b"1.000000"): 2.0}
    assert read.threads[b"7"].woken_by == {}


@dataclass(frozen=True)
class Chain:
    keys: tuple[Address, ...]


def test_a_join_is_the_waiting_of_the_thread_that_ended_first_and_not_of_one_that_ended_because_of_it(
    tmp_path: Path,
) -> None:
    records = [
        "7/7 1.000000: context-switches:",
        "7/7 1.000001: PERF_RECORD_SWITCH OUT",
        "7/8 1.000010: context-switches:",
        "7/8 1.000011: PERF_RECORD_SWITCH OUT",
        "7/9 1.000020: context-switches:",
        "7/9 1.000021: PERF_RECORD_SWITCH OUT",
        "7/8 2.000000: PERF_RECORD_SWITCH IN",
        "7/8 2.000050: PERF_RECORD_SWITCH OUT",  # it has ended
        "7/9 2.000100: PERF_RECORD_SWITCH IN",
        "7/9 2.000110: PERF_RECORD_SWITCH OUT",
        "7/7 2.001500: PERF_RECORD_SWITCH IN",  # the machine is busy
        "7/9 2.001900: PERF_RECORD_SWITCH IN",
        "7/9 2.002000: PERF_RECORD_SWITCH OUT",
    ]
    path = tmp_path / "switches.txt"
    path.write_text("\n".join(records) + "\n")
    waits: SampledWaits[Chain] = SampledWaits(read_switches(path))
    main, worker, beat = (Chain(((name, 0),)) for name in ("main", "worker", "beat"))
    waits.add(b"7", b"1.000000", 1, "join", main)
    waits.add(b"8", b"1.000010", 1, "pipe", worker)
    waits.add(b"9", b"1.000020", 1, "sleep", beat)
    (blamed,) = waits.blamed()
    assert (blamed.chain, blamed.kind) == (worker, "pipe")
    assert blamed.seconds == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("text", ["", "no text of perf\n", "12/12 1.000000: PERF_RECORD_SWITCH IN\n", "\0\n"])
def test_a_text_without_switches_has_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "switches.txt"
    path.write_text(text)
    assert not read_switches(path).sampled


@pytest.mark.parametrize(
    ("kernel", "library", "kind"),
    [
        ("schedule do_nanosleep", "clock_nanosleep usleep", "sleep"),
        ("", "clock_nanosleep", "sleep"),
        ("schedule futex_do_wait", "__futex_abstimed_wait_common pthread_cond_wait", "lock"),
        ("schedule futex_do_wait", "__futex_abstimed_wait_common __pthread_clockjoin_ex", "join"),
        ("", "__lll_lock_wait pthread_mutex_lock", "lock"),
        ("schedule anon_pipe_read vfs_read", "read", "pipe"),
        ("schedule unix_stream_read_generic sock_recvmsg vfs_read", "read", "network"),
        ("schedule do_poll", "poll", "input"),
        ("schedule ep_poll", "epoll_wait", "input"),
        ("schedule do_wait", "wait4 system", "child"),
        ("schedule folio_wait_writeback ext4_sync_file do_fsync", "fsync", "sync"),
        ("schedule io_schedule filemap_read vfs_read", "read", "file"),
        ("", "recvfrom", "network"),
        ("schedule something_else", "", "waiting"),
    ],
)
def test_the_kind_of_a_wait_is_that_of_the_functions_in_its_stack(
    kernel: str, library: str, kind: str
) -> None:
    assert wait_kind(kernel.split(), library.split()) == kind


# ------------------------------------------------------------ programs that run here

# It says itself how long it slept: on a busy machine a sleep takes longer.
TWO_PLACES = """
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>
double clock_of(clockid_t which) { timespec t; clock_gettime(which, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
__attribute__((noinline)) void rests(int times) {
    for (int i = 0; i < times; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}
__attribute__((noinline)) double computes(double seconds) {
    double sum = 0, end = clock_of(CLOCK_PROCESS_CPUTIME_ID) + seconds;
    while (clock_of(CLOCK_PROCESS_CPUTIME_ID) < end) for (int i = 0; i < 10000; ++i) sum = sum * 0.5 + i;
    return sum;
}
int main(int, char** words) {
    double sum = 0, slept = 0;
    for (int i = 0; i < 4; ++i) {
        double begin = clock_of(CLOCK_MONOTONIC);
        rests(25);
        slept += clock_of(CLOCK_MONOTONIC) - begin;
        sum += computes(0.1);
    }
    std::ofstream(std::string(words[0]) + ".slept") << slept;
    return sum == 0;
}
"""
HEARTBEAT = """
#include <atomic>
#include <chrono>
#include <thread>
std::atomic<bool> stop{false};
void beat() { while (!stop) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); } }
__attribute__((noinline)) void works() { std::this_thread::sleep_for(std::chrono::milliseconds(400)); }
int main() { std::thread h(beat), w(works); w.join(); stop = true; h.join(); }
"""


@pytest.fixture
def run_below_perf(tmp_path: Path) -> Callable[[str], SampledTime]:
    """Compile a program of C++, record it, and read what it waits for."""
    perf = probe_perf()
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    if not perf.switches_ok:
        pytest.skip("perf takes no samples of switches here")

    def run(source: str) -> SampledTime:
        program, text = tmp_path / "app", tmp_path / "app.cpp"
        text.write_text(source)
        subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-pthread", "-o", program, text], check=True)
        data, script, switches = (tmp_path / name for name in ("perf.data", "script.txt", "switches.txt"))
        record = record_argv(
            (str(program),),
            data,
            event="cpu-clock",
            call_graph="dwarf",
            perf=str(perf.path),
            options=perf.record_options,
            switches=True,
        )
        for argv in (
            record,
            script_argv(data, script, perf=str(perf.path), offsets=True),
            switches_argv(data, switches, perf=str(perf.path)),
        ):
            subprocess.run(argv, check=True, capture_output=True)
        sampled = with_text(native_lines(script, program, source_places, read_switches(switches)))
        assert sampled is not None
        return sampled

    return run


@pytest.mark.thorough
@pytest.mark.perf
def test_a_program_that_sleeps_and_computes_has_both_with_their_shares(
    run_below_perf: Callable[[str], SampledTime], tmp_path: Path
) -> None:
    sampled = run_below_perf(TWO_PLACES)
    slept = float((tmp_path / "app.slept").read_text())
    sleeps = sampled.waiting[0]
    assert (sleeps.function.partition("(")[0], list(sleeps.waits)) == ("rests", ["sleep"])
    assert [one.function for one in sleeps.callees] == ["this_thread::sleep_for"]
    assert 90 <= sleeps.waited <= 110
    computing = sum(one.main_cpu for one in sampled.lines if one.function.startswith("computes"))
    assert sleeps.main_wall / sampled.span == pytest.approx(slept / sampled.span, abs=0.1)
    assert sleeps.main_wall / (sleeps.main_wall + computing) == pytest.approx(slept / (slept + 0.4), abs=0.1)


@pytest.mark.thorough
@pytest.mark.perf
def test_a_thread_for_which_nobody_waits_is_not_what_the_program_waits_for(
    run_below_perf: Callable[[str], SampledTime],
) -> None:
    sampled = run_below_perf(HEARTBEAT)
    assert sampled.waiting[0].function.startswith("works")
    assert (
        sum(one.main_wall for one in sampled.waiting if one.function.startswith("beat")) < 0.1 * sampled.span
    )
