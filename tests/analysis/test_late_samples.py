"""What compiled code works for is at the line that called it, and not in the functions that it calls now and then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.hot_spots.callbacks import move_late_samples
from profkit.core.types import CodeLine, Frame, Hotspot, LineSamples, Profile, RunDocument, SampledTime
from tests import documents
from tests.answers.costly import document_of, record

FILE = "/work/redact.py"
SUB = "<method 'sub' of 're.Pattern' objects>"


def edge(caller: str, file: str | None, callee: str, seconds: float) -> Hotspot:
    return Hotspot(caller, seconds, seconds, 4272, file, None, callee=Frame(callee, None, FILE, 28))


def run(*edges: Hotspot, partial: bool = False, listed: bool = True) -> tuple[RunDocument, SampledTime]:
    """A run of 13 s, of which 12.5 were sampled in a function that masks what `re.sub` found, at line 33."""
    mask = LineSamples(
        "Redactor._mask",
        FILE,
        30,
        12.5,
        12.0,
        own=12.0,
        callers=(CodeLine("Redactor.__call__", FILE, 33, 12.5),),
    )
    caller = LineSamples("Redactor.__call__", FILE, 33, 0.5, 0.5, own=0.5)
    outer = replace(caller, main_wall=13.0, main_cpu=12.5)
    sampled = SampledTime(13.0, 12.5, lines=(mask, caller) if listed else (mask,), outer=(outer,))
    profile = Profile("calls", "s", 13.0, edges, "program-calls", partial=partial)
    return replace(documents.empty(), sampled=(sampled,), profiles=(profile,)), sampled


def seconds(found: SampledTime) -> dict[int | None, tuple[float, float]]:
    return {line.line: (round(line.main_wall, 2), round(line.own, 2)) for line in found.lines}


@pytest.mark.parametrize("listed", [True, False], ids=["caller sampled", "caller only above others"])
def test_samples_beyond_what_cprofile_timed_belong_to_the_line_that_called_compiled_code(
    listed: bool,
) -> None:
    found = move_late_samples(*run(edge(SUB, None, "_mask", 0.02), listed=listed))
    before = 0.5 if listed else 0.0
    assert seconds(found) == {30: (0.02, 0.02), 33: (12.48 + before, pytest.approx(11.98 + before, abs=0.01))}


@pytest.mark.parametrize(
    "case",
    [
        run(edge(SUB, None, "_mask", 6.0)),  # it works itself
        run(edge("main", FILE, "_mask", 4.28)),  # Python code calls it, for more than a millisecond
        run(edge(SUB, None, "_mask", 0.02), partial=True),  # of a part of the run
        run(edge(SUB, None, "other", 0.02)),
        run(),
    ],
)
def test_without_that_proof_samples_stay_where_they_were_taken(case: tuple[RunDocument, SampledTime]) -> None:
    assert move_late_samples(*case) is case[1]


def test_samples_of_a_brief_function_beyond_what_cprofile_timed_belong_to_the_line_that_calls_it() -> None:
    """An operator before it takes the time: no sample falls into that."""
    found = move_late_samples(*run(edge("main", FILE, "_mask", 0.02)))
    assert seconds(found) == {30: (0.02, 0.02), 33: (12.98, pytest.approx(12.48, abs=0.01))}
    document, sampled = run(edge("main", FILE, "_mask", 0.02))
    waiting = replace(sampled.lines[0], waits={"network": 12.0})
    sampled = replace(sampled, lines=(waiting, *sampled.lines[1:]))
    assert move_late_samples(document, sampled) is sampled  # it may wait for less in the other run


def test_samples_of_several_runs_are_compared_with_as_many_runs_under_cprofile() -> None:
    """A short program is sampled several times, and runs once under cProfile."""
    document, sampled = run(edge("main", FILE, "_mask", 1.25))
    assert move_late_samples(document, sampled) is not sampled  # of one run, it is a tenth of the samples
    main = Hotspot("main", 1.2, 1.3, counters={"threads": 1.0, "first_process": 1.0})
    threads = Profile("threads", "s", 1.3, (main,), "sampled-threads")
    of_ten = replace(document, profiles=(*document.profiles, threads))
    assert move_late_samples(of_ten, sampled) is sampled


PROGRAM = """
import re, sys

pattern = re.compile("(?:" + "|".join("name%d" % n for n in range(1500)) + ")!")
text = " ".join("name%d" % (n * 7 % 2000) for n in range(60)) + " name3!"

def mask(match):
    return "[NAME]"

def main():
    for _ in range(int(sys.argv[2]) or 300):
        pattern.sub(mask, text)
    print(300)

main()
"""


def test_the_time_of_a_regular_expression_is_at_its_line_and_not_in_what_it_calls(tmp_path: Path) -> None:
    record(tmp_path, PROGRAM, 0.0)
    document = document_of(tmp_path)
    first = document.hot_spots[0]
    assert first.where.function == "main"
    assert first.code is not None
    assert first.code.text.strip() == "pattern.sub(mask, text)"
    assert first.share > 0.5
