"""A child is run to its end, whatever it does."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from profkit import process
from profkit.errors import Interrupted, UsageError

PYTHON = sys.executable


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


@pytest.mark.parametrize(
    ("code", "returncode", "words"),
    [
        ("pass", 0, "exited with 0"),
        ("raise SystemExit(7)", 7, "exited with 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11, "died by SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, "died by SIGKILL"),
        ("raise SystemExit(137)", 137, "exited with 137 (SIGKILL)"),
    ],
)
def test_how_a_child_ended_is_said_in_words(code: str, returncode: int, words: str) -> None:
    outcome = process.run(python(code))
    assert (outcome.returncode, outcome.ending()) == (returncode, words)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: [str(folder / "absent")], "no such file"),
        (lambda folder: [str(_file(folder, "plain", 0o644))], "not executable"),
        (lambda folder: [str(_file(folder, "foreign", 0o755))], "cannot start"),
        (lambda folder: ["a\0b"], "cannot start"),
    ],
)
def test_a_command_that_cannot_start_is_a_usage_error(tmp_path: Path, make, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        process.run(make(tmp_path))


def _file(folder: Path, name: str, mode: int) -> Path:
    path = folder / name
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(mode)
    return path


def test_a_child_past_its_time_ends_with_its_whole_tree(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)\n"
    )
    outcome = process.run(python(code), timeout=1.5)
    assert outcome.timed_out
    assert "ran past its time" in outcome.ending()
    assert [psutil.pid_exists(int(pid)) for pid in pids.read_text().split()] == [False, False]


def test_a_process_that_outlives_its_parent_is_ended_and_counted(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(0.3)\n"
    )
    begin = time.monotonic()
    outcome = process.run(python(code))
    assert outcome.returncode == 0
    assert outcome.left_behind == 1
    assert not psutil.pid_exists(int(pid.read_text()))
    assert time.monotonic() - begin < 20


def test_megabytes_of_output_never_block_and_fill_no_disk(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = 16 * 1024 * 1024 // 64
    outcome = process.run(
        python(f"for i in range({lines}): print('x' * 63)\nprint('the last word')"), log=log
    )
    assert outcome.output_bytes == lines * 64 + len("the last word\n")
    assert log.stat().st_size < process.LOG_LIMIT + process.TAIL_BYTES + 200
    assert outcome.output_tail.endswith("the last word\n")
    assert log.read_text().endswith("the last word\n")


def test_a_log_that_cannot_be_written_costs_no_measurement(tmp_path: Path) -> None:
    outcome = process.run(python("print('kept')"), log=tmp_path / "absent" / "log")
    assert outcome.output_tail == "kept\n"


def test_standard_input_is_empty_since_a_workload_runs_several_times() -> None:
    assert process.run(python("import sys; print(repr(sys.stdin.read()))")).output_tail == "''\n"


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
