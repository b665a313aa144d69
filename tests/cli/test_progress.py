"""What a log is told of work."""

from __future__ import annotations

import io

import pytest

from profkit.cli import print_fault
from profkit.cli.progress import progress_for
from profkit.core.errors import MachineError


def test_a_log_gets_lines_without_control_characters() -> None:
    stream = io.StringIO()
    shown = progress_for(quiet=False, stream=stream)
    shown.begin("baseline", "a\x1b[31m.ncu-rep")
    shown.end("done after 3 s")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().endswith("  done after 3 s\n")


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_failed_has_the_sign_of_a_failure_on_a_terminal() -> None:
    stream = _Screen()
    shown = progress_for(quiet=False, stream=stream)
    shown.begin("counters", "valgrind")
    shown.fail("failed: no room in 3 s")
    assert stream.getvalue().endswith("  ✗ counters     failed: no room in 3 s\n")
    assert "✓" not in stream.getvalue()


def test_a_line_of_progress_is_cleared_before_an_error_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Screen()
    monkeypatch.setattr("sys.stderr", stream)
    progress_for(quiet=False).begin("timing", "3 processes, no profiler")
    print_fault(MachineError("no room"))
    assert stream.getvalue().endswith("\r\033[Kerror: no room\n")
