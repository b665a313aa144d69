"""What is told of work that may be long or short, and what is not."""

from __future__ import annotations

import io
import threading

from profkit.cli.progress import progress_for, show_if_long


class Listening:
    """Keeps what it is told, and says when the first of it came."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.heard = threading.Event()

    def begin(self, title: str, detail: str = "") -> None:
        self.told.append(f"{title}: {detail}")
        self.heard.set()

    def tick(self, seconds: float) -> None:
        self.told.append("tick")

    def end(self, result: str) -> None:
        self.told.append(f"end {result}")

    def note(self, text: str) -> None:
        self.told.append(f"note {text}")


def test_short_work_says_nothing() -> None:
    ear = Listening()
    with show_if_long("baseline", "a.ncu-rep", after=60, progress=ear):
        pass
    assert ear.told == []


def test_long_work_is_told_while_it_goes_on_and_when_it_is_done() -> None:
    ear = Listening()
    with show_if_long("baseline", "a.ncu-rep", after=0.01, progress=ear):
        assert ear.heard.wait(30)
    assert ear.told[0] == "baseline: a.ncu-rep"
    assert ear.told[-1].startswith("end done after")


def test_a_log_gets_lines_without_control_characters() -> None:
    stream = io.StringIO()
    shown = progress_for(quiet=False, stream=stream)
    shown.begin("baseline", "a\x1b[31m.ncu-rep")
    shown.end("done after 3 s")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().endswith("  done after 3 s\n")


def test_a_log_of_steps_has_one_line_for_each_when_it_ends() -> None:
    stream = io.StringIO()
    log = progress_for(quiet=False, stream=stream, ends_only=True)
    log.begin("step 1", "a commit")
    log.tick(1.0)
    log.move("pair 1")
    assert stream.getvalue() == ""
    log.end("4 pairs")
    assert stream.getvalue() == "step 1: 4 pairs\n"
