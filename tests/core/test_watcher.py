"""Whoever kills profkit itself leaves nothing running that it had started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.cli_runner import ENVIRONMENT, PROFKIT

# A program with a child that ignores SIGTERM, one in a session of its own, and a daemon that has lost its parent.
FAMILY = """
import os, signal, subprocess, sys, time
def note(pid):
    with open("pids", "a") as file:
        file.write(f"{pid}\\n")
note(os.getpid())
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(120)"
note(subprocess.Popen([sys.executable, "-c", stubborn]).pid)
note(subprocess.Popen(["sleep", "120"], start_new_session=True).pid)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        note(os.getpid())
        os.execve("/bin/sleep", ["sleep", "120"], {})
    os._exit(0)
os.wait()
open("ready", "w").close()
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
    (tmp_path / "family.py").write_text(FAMILY)
    return tmp_path


def kill_and_look(started: subprocess.Popen[bytes], folder: Path) -> list[int]:
    """Kill it once the family is there; who is left of it after some seconds."""
    assert wait_for((folder / "ready").exists, 60), "the program did not start"
    time.sleep(1.0)  # in which it is looked at
    below = psutil.Process(started.pid).children(recursive=True)
    os.kill(started.pid, signal.SIGKILL)
    started.wait(10)
    pids = [int(pid) for pid in (folder / "pids").read_text().split()] + [process.pid for process in below]
    wait_for(lambda: not any(map(is_alive, pids)), 15)
    left = [pid for pid in pids if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(pids) >= 5
    return left


def test_a_killed_profile_leaves_nothing_of_its_program(family: Path) -> None:
    argv = [*PROFKIT, "profile", "--quiet", "--", sys.executable, "family.py"]
    started = subprocess.Popen(argv, cwd=family, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    assert kill_and_look(started, family) == []
