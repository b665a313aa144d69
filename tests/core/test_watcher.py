"""Whoever kills profkit itself leaves nothing running that it had started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.cli_runner import ENVIRONMENT, PROFKIT
from tests.conftest import ROOT
from tests.git_repository import git

# A program with a child that ignores SIGTERM, one in a session of its own, and a daemon that has lost its parent.
FAMILY = """
import os, signal, subprocess, sys, time
here = {folder!r}
def note(pid):
    with open(os.path.join(here, "pids"), "a") as file:
        file.write(f"{{pid}}\\n")
note(os.getpid())
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(120)"
note(subprocess.Popen([sys.executable, "-c", stubborn]).pid)
note(subprocess.Popen(["sleep", "120"], start_new_session=True).pid)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        note(os.getpid())
        os.execve("/bin/sleep", ["sleep", "120"], {{}})
    os._exit(0)
os.wait()
open(os.path.join(here, "ready"), "w").close()
time.sleep(120)
"""


def wait_for(true, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def family(tmp_path: Path) -> Path:
    (tmp_path / "family.py").write_text(FAMILY.format(folder=str(tmp_path)))
    return tmp_path


def kill_and_look(started: subprocess.Popen[bytes], is_there: Callable[[], bool]) -> list[int]:
    """Kill it once its program is there; what is left after some seconds of all that was below it."""
    assert wait_for(is_there, 90), "the program did not start"
    time.sleep(1.0)  # in which it is looked at
    pids = [process.pid for process in psutil.Process(started.pid).children(recursive=True)]
    os.kill(started.pid, signal.SIGKILL)
    started.wait(10)
    wait_for(lambda: not any(map(is_alive, pids)), 15)
    left = [pid for pid in pids if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def left_of_family(started: subprocess.Popen[bytes], folder: Path) -> list[int]:
    left = kill_and_look(started, (folder / "ready").exists)
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    assert len(pids) == 4
    return left + [pid for pid in pids if is_alive(pid)]


COMMAND = ["--", sys.executable, "family.py"]
HELLO = """
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"profile","arguments":{"command":["python","family.py"]}}}
"""
KERNEL = """
import time
from profkit.evaluation import kernel

@kernel("relu.default")
def relu(x):
    print("it began", flush=True)
    time.sleep(300)
"""


def started(folder: Path, *words: str, said: str = "") -> subprocess.Popen[bytes]:
    """A profkit in `folder`, where also its temporary files stay: killed, it takes none away."""
    child = subprocess.Popen(
        [*PROFKIT, *words],
        cwd=folder,
        env={**ENVIRONMENT, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    child.stdin.write(said.lstrip().encode())
    child.stdin.flush()
    return child


@pytest.mark.thorough
def test_a_killed_profile_leaves_nothing_of_its_program(family: Path) -> None:
    assert left_of_family(started(family, "profile", "--quiet", *COMMAND), family) == []


@pytest.mark.thorough
def test_a_killed_server_of_an_agent_leaves_nothing_of_what_it_profiles(family: Path) -> None:
    pytest.importorskip("mcp", reason="the package mcp is not installed")
    assert left_of_family(started(family, "mcp", ".", said=HELLO), family) == []


def test_a_killed_comparison_leaves_nothing_of_either_version(family: Path) -> None:
    git(family, "init", "-q", "-b", "main")
    git(family, "add", "family.py")
    git(family, "commit", "-q", "-m", "one")
    (family / "family.py").write_text((family / "family.py").read_text() + "\n# two\n")
    assert left_of_family(started(family, "compare", "--base", "HEAD", *COMMAND), family) == []


@pytest.mark.torch
def test_a_killed_evaluation_leaves_nothing_of_its_workers_and_kernels(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    words = ("evaluate", "kernel.py", "--device", "cpu", "--ops", "relu", "--correctness-only")

    def began() -> bool:
        return any("it began" in log.read_text() for log in tmp_path.glob("reports/*/logs/*.log"))

    assert kill_and_look(started(tmp_path, *words), began) == []


def test_a_watcher_knows_nothing_of_trees_that_have_ended(tmp_path: Path) -> None:
    """Nor does a process that was forked from a profkit hold its watcher up."""
    code = (
        "import os, subprocess, sys, time\n"
        "from profkit.core import process, watcher\n"
        "process.run(['true'])\n"
        "other = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "if (forked := os.fork()) == 0:\n    time.sleep(60)\n    os._exit(0)\n"
        "print(other.pid, forked, watcher._watcher.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert done.stdout is not None
    other, forked, ours = map(int, done.stdout.readline().split())
    done.wait(10)
    try:
        assert wait_for(lambda: not is_alive(ours), 10)
        assert is_alive(other)
    finally:
        os.kill(other, signal.SIGKILL)
        os.kill(forked, signal.SIGKILL)
