"""A child is run to its end, whatever it does."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from profkit.core import process
from profkit.core.errors import Interrupted, UsageError

PYTHON = sys.executable


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


@pytest.mark.parametrize(
    ("code", "returncode", "words"),
    [
        ("pass", 0, "exited with 0"),
        ("raise SystemExit(7)", 7, "exited with 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11, "was killed by SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, "was killed by SIGKILL"),
        ("raise SystemExit(137)", 137, "exited with 137 (SIGKILL)"),
    ],
)
def test_how_a_child_ended_is_said_in_words(code: str, returncode: int, words: str) -> None:
    outcome = process.run(python(code))
    assert (outcome.returncode, outcome.ending()) == (returncode, words)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: [str(folder / "absent")], "No such file"),
        (lambda folder: [str(_file(folder, "plain", 0o644))], "Permission denied"),
        (lambda folder: [str(_file(folder, "foreign", 0o755))], "cannot start"),
        (lambda folder: ["a\0b"], "cannot start"),
    ],
)
def test_a_command_that_cannot_start_is_a_usage_error(tmp_path: Path, make, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        process.run(make(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts them")
@pytest.mark.parametrize(("child", "mapped"), [("again", True), ("below", False)])
def test_pages_that_the_child_itself_got_are_known_at_its_end(child: str, mapped: bool) -> None:
    """In 4000 pages of a mapping that it gives back five times, or has a process of its own do so."""
    again = "import mmap\nfor _ in range(5):\n    m = mmap.mmap(-1, 4000 * 4096)\n    m[::4096] = b'x' * 4000"
    below = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {again!r}], check=True)"
    use = process.run(python(again if child == "again" else below)).use
    assert use is not None
    assert (20_000 <= use.faults < 60_000) is mapped
    assert 0 <= use.kernel < 20
    assert not mapped or use.kernel > 0


def _file(folder: Path, name: str, mode: int) -> Path:
    path = folder / name
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(mode)
    return path


def let_time_pass(monkeypatch: pytest.MonkeyPatch, when: Callable[[], bool]) -> None:
    """Hours are gone as soon as `when()`: a time limit is passed by what happened, however busy the machine is."""
    hours = SimpleNamespace(monotonic=lambda: time.monotonic() + 10_000 * when())
    monkeypatch.setattr(process, "time", hours)


def test_a_child_past_its_time_ends_with_its_whole_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    let_time_pass(monkeypatch, lambda: pids.exists() and pids.read_text() != "")
    code = (
        "import os, subprocess, sys, time, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)\n"
    )
    outcome = process.run(python(code), timeout=5000.0)
    assert outcome.timed_out
    assert "ran past its time" in outcome.ending()
    assert [psutil.pid_exists(int(pid)) for pid in pids.read_text().split()] == [False, False]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts no waiting for a processor here")
def test_time_in_which_others_have_the_processor_does_not_count_up_to_the_longest() -> None:
    spin = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    beside = [subprocess.Popen(python(spin), start_new_session=True) for _ in range(2)]
    try:
        outcome = process.run(python(spin), timeout=1.0, longest=30.0)
        most = process.run(python(spin), timeout=1.0, longest=1.2)
        without = process.run(python(spin), timeout=1.0)
    finally:
        for other in beside:
            other.kill()
            other.wait()
    assert outcome.timed_out
    assert 0.6 <= outcome.seconds - outcome.usage[-1][2] <= 1.5
    assert outcome.seconds > 1.3
    assert without.seconds < outcome.seconds
    assert without.usage[-1][1] < 0.8
    assert most.timed_out
    assert most.usage[-1][1] < 0.9


def test_a_child_that_sleeps_is_not_given_longer() -> None:
    outcome = process.run(python("import time; time.sleep(60)"), timeout=0.5, longest=30.0)
    assert outcome.timed_out
    assert outcome.seconds < 15.0


@pytest.mark.thorough
def test_megabytes_of_output_never_block_and_fill_no_disk(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = 16 * 1024 * 1024 // 64
    outcome = process.run(
        python(f"for i in range({lines}): print('x' * 63)\nprint('the last word')"), log=log
    )
    assert log.stat().st_size < process.LOG_LIMIT + process.TAIL_BYTES + 200
    assert outcome.output_tail.endswith("the last word\n")
    assert log.read_text().endswith("the last word\n")


def test_a_cancelled_child_ends_at_once() -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    begin = time.monotonic()
    with pytest.raises(Interrupted):
        process.run(python("import time; time.sleep(60)"), cancel=cancel)
    assert time.monotonic() - begin < 15


def test_what_it_cost_is_counted() -> None:
    outcome = process.run(
        python(
            "x = bytearray(80_000_000)\nimport time\nt = time.process_time()\nwhile time.process_time() < t + 0.4: pass"
        )
    )
    assert outcome.cpu_seconds >= 0.4
    assert outcome.peak_rss > 80_000_000


def test_a_daemon_that_forked_twice_into_its_own_session_is_ended_too(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "        os.execve('/bin/sleep', ['sleep', '60'], {})\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    process.run(python(code))
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


TWICE = """
import sys, threading, time, os, signal
from profkit.core import process, process_tree

def strike():
    while not os.path.exists("pid"):
        time.sleep(0.01)
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)

process_tree.ProcessTree.end.__defaults__ = (60.0,)  # its patience
threading.Thread(target=strike).start()
try:
    process.run([sys.executable, "-c", sys.argv[1]])
except KeyboardInterrupt:
    print("interrupted")
"""
STUBBORN = (
    "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
)


def test_a_second_ctrl_c_ends_the_patience_and_leaves_nothing_behind(tmp_path: Path) -> None:
    begin = time.monotonic()
    done = subprocess.run(
        [PYTHON, "-c", TWICE, STUBBORN], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n")
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
    assert time.monotonic() - begin < 40  # of a patience of 60 s and more
