"""A profiler that only this test knows goes through record, summarize, doctor and scrub: nothing else names a tool."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from profkit.core.errors import Fault, MachineError
from profkit.core.progress import Silent
from profkit.core.types import Check, Counter, Report, Step
from profkit.profilers.profiler import Format, Profiler, Recorder, RecordRequest
from profkit.profilers.redact import COMMAND, Redactor
from profkit.profilers.registry import PROFILERS
from profkit.profiling.record import RecordOptions, record_report
from profkit.profiling.scrub import scrub
from tests.cli_runner import profkit

TICKS = """#!/bin/sh
# ticks OUTPUT COMMAND...: counts one tick for each word of the command
output=$1; shift
[ "$1" = false ] && { echo "ticks: no permission"; exit 9; }
"$@"
printf 'TICKS 1.2\\ncommand %s\\nticks %d\\n' "$*" "$#" > "$output"
"""


def read_ticks(path: Path) -> Report:
    """The report in a file that `ticks` wrote."""
    _, command, ticks = (line.split(" ", 1)[1] for line in path.read_text().splitlines())
    return Report(
        "ticks",
        "ticks",
        "1.2",
        {"command": command},
        (Counter("ticks", float(ticks), "measured", unit="count"),),
    )


def scrub_ticks(source: Path, output: Path, redactor: Redactor) -> None:
    """A copy without the command."""
    redactor.note(COMMAND)
    first, _, last = source.read_text().splitlines()
    output.write_text(f"{first}\ncommand program\n{last}\n")


class Ticks:
    """The object of the profiler."""

    name = "ticks"
    formats = (
        Format(
            name, name, "a file of ticks", lambda head: head.startswith(b"TICKS "), read_ticks, scrub_ticks
        ),
    )

    def __init__(self, program: Path) -> None:
        self.program = program
        self.recorder = Recorder(self.step, follows_region=False)

    def step(self, request: RecordRequest) -> Step:
        return Step(
            "record", (str(self.program), str(request.report.absolute()), *request.command), tool=self.name
        )

    def explain(self, text: str, _: int) -> Fault | None:
        return Fault("it may not count", "ask for permission") if "no permission" in text else None

    def checks(self) -> Iterable[Check]:
        yield Check("ticks", "ok" if os.access(self.program, os.X_OK) else "missing", "counts words")


@pytest.fixture(autouse=True)
def _listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ticks"
    program.write_text(TICKS)
    program.chmod(0o755)
    load: Callable[[], Profiler] = lambda: Ticks(program)  # noqa: E731 - mypy compares the object with the Protocol
    monkeypatch.setitem(PROFILERS, "ticks", load)
    monkeypatch.chdir(tmp_path)


def test_it_records_a_report_that_is_read_and_scrubbed(tmp_path: Path) -> None:
    options = RecordOptions(
        "ticks", tmp_path / "out", (sys.executable, "-c", "pass", "--key=hf_12345678901234")
    )
    report = record_report(options, Silent())
    shown = profkit("summarize", report, cwd=tmp_path)
    assert shown.code == 0, shown.err
    document = profkit("summarize", report, "--format", "json", cwd=tmp_path).json()
    assert document["tools"] == {"ticks": "1.2"}
    assert [(one["name"], one["value"]) for one in document["counters"]] == [("ticks", 4.0)]
    done = scrub(report, tmp_path / "public")
    assert [removed.kind for removed in done.removed] == [COMMAND]
    assert "hf_" not in done.output.read_text()
    assert (
        profkit("summarize", done.output, "--format", "json", cwd=tmp_path).json()["counters"]
        == document["counters"]
    )


def test_its_errors_are_explained(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="ticks: it may not count") as fault:
        record_report(RecordOptions("ticks", tmp_path / "out", ("false",)), Silent())
    assert fault.value.fix == "ask for permission"
