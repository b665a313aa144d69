"""What a child prints while it is waited for does not fill the disk."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profkit.execution import child as children
from profkit.execution.child import ChildProcess

PRINTS = """
import os, time
os.write(2, b"x" * 100_000)
time.sleep(0.5)
os.write(1, b"done\\n")
time.sleep(60)
"""


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
