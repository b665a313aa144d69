"""What a child prints while it is waited for does not fill the disk."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profkit.execution import child as children
from profkit.execution.child import ChildProcess, WorkerEnded

PRINTS = """
import os, time
os.write(2, b"x" * 100_000)
time.sleep(0.5)
os.write(1, b"done\\n")
time.sleep(60)
"""


def test_a_child_that_reads_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "STALL_SECONDS", 0.5)
    child = ChildProcess(["sleep", "300"], {}, tmp_path / "log")
    child.start()
    with pytest.raises(WorkerEnded, match=r"it read nothing for 0\.5 s, and was ended"):
        child.send(bytes(1 << 20))
    assert not child.running


def test_the_log_is_cut_while_an_answer_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LOG_LIMIT", 1000)
    monkeypatch.setattr(children, "LOOK_SECONDS", 0.05)
    log = tmp_path / "child.log"
    child = ChildProcess([sys.executable, "-c", PRINTS], {}, log)
    try:
        child.start()
        assert child.read_line(20.0) == b"done"
        assert log.stat().st_size <= 1000
    finally:
        child.close()
