"""Programs that a shell script starts again and again: how long their starts take, by counts of their processes."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.evidence import RunEvidence
from profkit.analysis.hot_spots.native import is_python
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import Gain, Insight, Place, RunDocument, StartedProgram

SEVERAL, MIN_STARTS = 3, 100  # starts of a program whose imports are known, and of any other
SHORT = 0.01  # processor seconds of each process: its start is a good part of that
MIN_GAIN_SHARE = 0.2  # of the run time
IMPORTING = 0.5  # of a Python program's time
_WAITS = ("pipe", "child")


def repeated_starts(run: RunEvidence) -> Iterator[Insight]:
    """Find a program that is started again and again, where its start takes a good part of the run's time."""
    document = run.document
    if document.workload.python is not None:
        return
    python = next((sampled for sampled in document.sampled if not sampled.native and sampled.programs), None)
    if python is not None:
        yield from _scripts(document, python.programs)
    native = next((sampled for sampled in document.sampled if sampled.native and sampled.programs), None)
    if native is not None and native.cpu > 0:
        yield from _programs(document, native.programs, native.cpu)


def _scripts(document: RunDocument, programs: tuple[StartedProgram, ...]) -> Iterator[Insight]:
    """Yield the scripts of Python that import the same modules in each of several processes."""
    imports = [spot for spot in document.hot_spots if spot.kind == "import"]
    share = sum(spot.share for spot in imports)
    whole = sum(program.starting for program in programs)
    for program in programs:
        part = share * program.starting / whole if whole > 0 else 0.0
        gain = part * (1 - 1 / program.starts)
        if (
            program.starts < SEVERAL
            or program.starting < IMPORTING * program.seconds
            or gain < MIN_GAIN_SHARE
        ):
            continue
        lines = [spot for spot in imports if (spot.where.file or "").rpartition("/")[2] == program.name]
        first = max(lines, key=lambda spot: spot.share, default=None)
        named = f" ({first.under.name})" if first is not None and first.under is not None else ""
        seconds = sum(spot.seconds for spot in imports) * part / share / program.starts
        place = Place(file=program.file, line=program.line) if program.line is not None else None
        yield Insight(
            "repeated-starts",
            f"{program.command} {program.name} is started {program.starts:,} times, and imports its modules each time",
            f"{percent_text(100 * part)} of the time: each of {program.starts:,} processes imports{named} for "
            f"{format_quantity(seconds, 's')}, which is {percent_text(100 * program.starting / program.seconds)} of "
            "its time",
            words("repeated-starts.python", "host"),
            place or (first.where if first is not None else Place(function=program.name)),
            Gain(min(1.0, gain), "the run time", ""),
        )


def _programs(
    document: RunDocument, programs: tuple[StartedProgram, ...], processor: float
) -> Iterator[Insight]:
    """Yield the program that is started most, where short processes take a good part of the time.

    The shell waits for them, and forks for each.
    """
    many = [
        program
        for program in programs
        if program.starts >= MIN_STARTS
        and program.seconds <= SHORT * program.starts
        and not is_python(program.name)
    ]
    own = [program for program in many if program.command]
    split = document.time_split
    if not own or split is None or split.wall <= 0:
        return
    waiting = min(1.0, (split.waiting or 0.0) / split.wall)
    waited = sum(spot.share for spot in document.hot_spots if spot.kind in _WAITS)
    share = (1 - waiting) * sum(program.seconds for program in many) / processor + waited
    most = max(own, key=lambda program: program.seconds)
    gain = min(1.0, share * (1 - 1 / most.starts))
    if gain < MIN_GAIN_SHARE:
        return
    others = [f"{program.name}: {program.starts:,}" for program in many if program is not most]
    each = format_quantity(most.seconds / most.starts, "s")
    beside = f"; beside it {', '.join(others)}" if others else ""
    yield Insight(
        "repeated-starts",
        f"{most.command} is started at least {most.starts:,} times, for a moment each",
        f"{percent_text(100 * share)} of the time: each process takes {each} of a processor{beside}",
        words("repeated-starts", "host"),
        Place(file=most.file, line=most.line) if most.line is not None else Place(function=most.name),
        Gain(gain, "the run time", ""),
    )
