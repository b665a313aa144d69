"""The trace pass: its command lines as data, and, where perf works, that they do what they say."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.analysis.stacks.merge import PYTHON
from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.command import (
    inject_argv,
    python_frames,
    record_argv,
    record_options,
    recorded_pids,
    remove_leftovers,
    script_argv,
)
from profkit.profilers.perf.probe import conversion_argv, find_perf
from profkit.profilers.perf.script import looks_like_script, read_script
from tests.spoken import spoken

OUT = Path("artifacts/perf.data")
WORK = """
import time
def inner():
    return sum(i * i for i in range(2000))
def outer(end):
    while time.process_time() < end:
        inner()
outer(time.process_time() + 0.3)
"""


def test_a_switched_recording_starts_disabled_and_listens_to_its_fifos():
    argv = record_argv(["true"], OUT, event="cycles", call_graph="fp", control="c", ack=Path("a"))
    assert argv[argv.index("-D") + 1] == "-1"
    assert argv[argv.index("--control") + 1] == "fifo:c,a"
    without_ack = record_argv(["true"], OUT, event="cycles", call_graph="fp", control="c")
    assert without_ack[without_ack.index("--control") + 1] == "fifo:c"
    assert "-D" not in record_argv(["true"], OUT, event="cycles", call_graph="fp")


def test_perf_ends_with_the_workload_where_it_can_be_told_not_to_listen_for_bpf_programs():
    """Its listener looks up once a second; before 5.1 there was none, and the option is unknown."""
    assert [record_options(version) for version in (None, "", "4.19.0", "5.0.1")] == [()] * 4
    for version in ("5.1", "5.15.160", "6.1.90", "6.6.87.2.g9c4", "10.0"):
        assert record_options(version) == ("--no-bpf-event",)
    argv = record_argv(["true"], OUT, event="cycles", call_graph=None, options=record_options("6.1"))
    assert argv.index("--no-bpf-event") < argv.index("--")


@pytest.mark.parametrize(
    ("version", "variable", "call_graph", "inject", "says"),
    [
        (None, None, "dwarf", False, "native"),
        ((3, 11), None, "dwarf", False, "native frames only"),
        ((3, 12), "PYTHONPERFSUPPORT", "fp", False, "only about 1 stack in 100"),
        ((3, 13), "PYTHON_PERF_JIT_SUPPORT", "dwarf", True, "native and Python"),
        ((3, 14), "PYTHON_PERF_JIT_SUPPORT", "dwarf", True, "native and Python"),
    ],
)
def test_how_python_frames_are_had(version, variable, call_graph, inject, says):
    frames = python_frames(version)
    assert dict(frames.env) == ({variable: "1"} if variable else {})
    assert (frames.call_graph, frames.inject) == (call_graph, inject)
    assert says in spoken(frames.note)


def test_only_files_of_the_recorded_processes_of_this_recording_are_cleaned_up(tmp_path: Path):
    mine = ["perf-7.map", "jit-7.dump", "jitted-7-1.so", "jitted-7-22.so"]
    others = ["perf-8.map", "jit-77.dump", "jitted-7.so", "perf-7.map.bak", "notes.txt", "perf-x.map"]
    for name in mine + others:
        (tmp_path / name).write_text("x")
    (tmp_path / "jitted-7-3.so").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "jitted-7-4.so").mkdir()
    (tmp_path / "jitted-7-5.so").write_text("of an older process of that number")
    os.utime(tmp_path / "jitted-7-5.so", (1, 1))
    since = time.time() - 5
    assert remove_leftovers({7}, since, tmp_path) == 4
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*others, "jitted-7-3.so", "jitted-7-4.so", "jitted-7-5.so"}
    assert remove_leftovers({7}, since, tmp_path / "absent") == 0


def recording(*, finished: bool = True) -> bytes:
    """A perf.data by the documented layout: two processes, a sample, and a feature behind them."""
    records = b"".join(
        struct.pack("<IHH", kind, 0, 8 + len(body)) + body
        for kind, body in [
            (3, struct.pack("<II8s", 41, 41, b"app")),  # COMM
            (10, bytes(56)),  # MMAP2
            (7, struct.pack("<IIIIQ", 42, 41, 42, 41, 0)),  # FORK
            (9, bytes(4000)),  # SAMPLE
        ]
    )
    # A feature that perf puts behind the records: the host's name, which nothing here may look at.
    features = struct.pack("<QQ", 104 + len(records) + 16, 64) + b"secret-host".ljust(64, b"\0")
    sizes = (104, 144, 0, 0, 104, len(records) if finished else 0, 0, 0)
    head = b"PERFILE2" + struct.pack("<8Q4Q", *sizes, 1 << 3, 0, 0, 0)
    return head + records + (features if finished else b"")


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "pids"),
    [
        (recording(), {41, 42}),
        (recording(finished=False), {41, 42}),  # perf was killed
        (recording()[:104], set()),
        (recording()[:125], {41}),
        (recording()[:220], {41, 42}),
    ],
)
def test_a_recording_names_its_processes_as_far_as_it_goes(tmp_path: Path, data: bytes, pids: set[int]):
    assert recorded_pids(write(tmp_path, data)) == pids


@pytest.mark.parametrize("data", [b"", recording()[:50], b"\x7fELF" + bytes(200)])
def test_what_is_no_recording_is_refused_with_a_sentence(tmp_path: Path, data: bytes):
    with pytest.raises(UnreadableReport, match=r"not a perf\.data"):
        recorded_pids(write(tmp_path, data))


def run(argv: tuple[str, ...], **env: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **env}, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
@pytest.mark.perf
def test_a_real_recording_becomes_text_that_the_reader_takes(tmp_path: Path):
    data, text = tmp_path / "perf.data", tmp_path / "a folder's text.txt"
    home = tmp_path / "home"
    home.mkdir()
    workload = [sys.executable, "-c", WORK]
    run(record_argv(workload, data, event="cpu-clock", call_graph="dwarf"), HOME=str(home))
    run(script_argv(data, text))
    assert looks_like_script(text.read_bytes()[:65536])
    report = read_script(text)
    (stacks,) = report.stacks
    assert stacks.unit == "s"
    # 0.3 s of work and the start of an interpreter, on a machine that may be busy with other things.
    assert 0.1 < sum(stacks.weights.values()) < 5
    evaluating = [h for h in report.profiles[0].hotspots if h.function.startswith("_PyEval_EvalFrameDefault")]
    assert (evaluating[0].total or 0) > 0.5 * report.profiles[0].total
    assert list(home.iterdir()) == []
    assert conversion_argv(data, text) == script_argv(data, text, perf=str(find_perf().path))


def interpreter(minor: int) -> str:
    """Some Python 3.`minor` of this machine, started without a wrapper script, or a skip that says so."""
    for candidate in [
        f"python3.{minor}",
        *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")),
    ]:
        probe = "import sys; print(sys.version_info[1], sys.executable)"
        try:
            done = subprocess.run([candidate, "-c", probe], capture_output=True, text=True, timeout=20)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.split()[0] == str(minor):
            return os.path.realpath(done.stdout.split(maxsplit=1)[1].strip())
    pytest.skip(f"Python 3.{minor} is not on this machine")


@pytest.mark.thorough
@pytest.mark.perf
@pytest.mark.parametrize("minor", [12, 13])
def test_python_frames_are_what_is_promised_and_nothing_is_left_behind(tmp_path: Path, minor: int):
    python = interpreter(minor)
    frames = python_frames((3, minor))
    data, injected, text = tmp_path / "perf.data", tmp_path / "injected", tmp_path / "text"
    since = time.time()
    argv = record_argv([python, "-c", WORK], data, event="cpu-clock", call_graph=frames.call_graph)
    run(argv, **frames.env)
    if frames.inject:
        run(inject_argv(data, injected))
    run(script_argv(injected if frames.inject else data, text))
    functions = read_script(text).profiles[0]
    python_share = {
        h.function: (h.total or 0) / functions.total for h in functions.hotspots if h.library == PYTHON
    }
    if minor >= 13:
        assert python_share["inner"] > 0.4
        assert python_share["outer"] >= python_share["inner"]
    pids = recorded_pids(data)
    assert len(pids) == 1
    assert remove_leftovers(pids, since) >= 1
    assert remove_leftovers(pids, since) == 0
