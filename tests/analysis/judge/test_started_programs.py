"""Programs that a shell starts again and again: found where their start takes the time, silent where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.core.types import (
    Beneath,
    CodeSpot,
    Insight,
    LineSamples,
    Place,
    RunDocument,
    SampledTime,
    StartedProgram,
    TimeSplit,
)
from tests import documents


def _findings(document: RunDocument) -> list[Insight]:
    return [one for one in find_insights(document) if one.rule == "repeated-starts"]


def _script(starts: int, starting: float) -> RunDocument:
    program = StartedProgram("stock.py", "python", starts, 3.0, starting, "/app/report.sh", 22)
    imports = CodeSpot(
        0.8, 2.4, "import", Place(function="<module>", file="/app/stock.py", line=5), Beneath("pandas")
    )
    return replace(
        documents.empty(),
        sampled=(SampledTime(3.0, 3.0, programs=(program,)),),
        hot_spots=(imports, CodeSpot(0.2, 0.6, "rest")),
    )


def test_a_script_that_imports_in_each_of_several_processes_is_named() -> None:
    (found,) = _findings(_script(5, 2.4))
    assert found.title == "python stock.py is started 5 times, and imports its modules each time"
    assert (found.where.file, found.where.line) == ("/app/report.sh", 22)
    assert "each of 5 processes imports (pandas) for 480 ms" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.64)  # one of five starts stays


@pytest.mark.parametrize(
    ("starts", "starting"), [(1, 2.4), (5, 1.0)]
)  # started once; most is work of its own
def test_a_script_whose_start_is_not_repeated_or_not_the_cost_is_silent(starts: int, starting: float) -> None:
    assert not _findings(_script(starts, starting))


def _shell(starts: int, seconds: float) -> RunDocument:
    programs = (
        StartedProgram("cut", "cut", starts, seconds, 0.1),
        StartedProgram("copies of bash", "", 2 * starts, 0.5, 0.5),
    )
    lines = tuple(
        LineSamples(one.name, None, None, one.seconds, one.seconds, own=one.seconds) for one in programs
    )
    cpu = seconds + 1.0
    sampled = SampledTime(cpu, cpu, native=True, lines=lines, programs=programs)
    split = TimeSplit(wall=2 * cpu, waiting=cpu, cpu=cpu)
    document = replace(documents.empty(), sampled=(sampled,), time_split=split)
    return replace(document, hot_spots=hot_spots(document))


def test_a_program_that_a_shell_starts_for_each_line_is_named() -> None:
    document = _shell(1000, 2.0)
    (found,) = _findings(document)
    assert found.title == "cut is started at least 1,000 times, for a moment each"
    assert (
        "each process takes 2 ms of a processor; beside it copies of bash: 2,000"
        in found.evidence.replace("2.00", "2")
    )
    assert found.where.function == "cut"
    rows = {spot.where.function: spot.starts for spot in document.hot_spots if spot.starts}
    assert rows == {"cut": 1000, "copies of bash": 2000}


@pytest.mark.parametrize(("starts", "seconds"), [(5, 0.01), (1000, 200.0)])  # few; long work in each
def test_programs_that_work_or_are_few_are_silent(starts: int, seconds: float) -> None:
    assert not _findings(_shell(starts, seconds))
