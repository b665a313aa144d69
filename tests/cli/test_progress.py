"""What a log is told of work."""

from __future__ import annotations

import io

from profkit.cli.progress import progress_for


def test_a_log_gets_lines_without_control_characters() -> None:
    stream = io.StringIO()
    shown = progress_for(quiet=False, stream=stream)
    shown.begin("baseline", "a\x1b[31m.ncu-rep")
    shown.end("done after 3 s")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().endswith("  done after 3 s\n")
