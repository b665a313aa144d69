"""Watches calls of real programs: the same arguments, one exponent and the same files are seen, and others are not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profkit.backends.watched_calls import seen_in_calls
from profkit.core.types import RegisterFact
from profkit.profilers.perf.look_records import read_looks, watched_file
from profkit.profilers.perf.looks import looks_argv
from profkit.profilers.perf.registers import CodePlace
from profkit.profilers.perf.watch import WatchedCall, WatchReport, counted, read_watched
from profkit.profilers.perf.watched_facts import watched_facts
from tests.profilers.perf.test_registers import PROGRAMS, needs_a_compiler

SIZES = {"argument": "120", "exponent": "15000", "names": "600000"}


def seen(name: str, folder: Path, *, fixed: bool) -> tuple[RegisterFact, ...]:
    """Compile a form of a program, run it, and return what its watched calls showed."""
    program, looks = folder / f"{name}{'-fixed' * fixed}", folder / "looks"
    form = ["-DFIXED"] if fixed else []
    argv = ["g++", "-O2", "-g", "-std=c++17", *form, "-o", str(program), str(PROGRAMS / f"{name}.cpp")]
    subprocess.run(argv, check=True, capture_output=True)
    plain = subprocess.run((str(program), SIZES[name]), capture_output=True, check=True)
    command = looks_argv((str(program), SIZES[name]), str(program), looks, 1.0)
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    if not read_looks(looks):
        pytest.skip("registers of other processes are not shown here")
    return seen_in_calls(program, read_watched(watched_file(looks)))


@pytest.mark.thorough
@needs_a_compiler
@pytest.mark.parametrize(("kind", "number"), [("argument", 17), ("exponent", 6), ("names", 7)])
def test_calls_show_what_stays_the_same_and_not_what_differs(kind: str, number: int, tmp_path: Path) -> None:
    written, mended = (seen(kind, tmp_path, fixed=fixed) for fixed in (False, True))
    assert [one.kind for one in written] == [kind]
    assert [one.kind for one in mended] == []
    fact = written[0]
    assert fact.number == number
    if kind != "names":
        source = (PROGRAMS / f"{kind}.cpp").read_text().splitlines()
        assert fact.line is not None
        assert f"std::{fact.name}(" in source[fact.line - 1]


def pairs(*arguments: tuple[float, float]) -> list[bytes]:
    import struct

    return [struct.pack("<dddd", one, 0.0, two, 0.0) for one, two in arguments]


def test_arguments_are_counted_and_a_second_one_that_stays_is_kept() -> None:
    call = counted(16, pairs(*((float(n % 5), 2.0) for n in range(300))))
    assert (call.calls, call.first, call.pairs, call.second) == (300, 5, 5, 2.0)
    assert counted(16, pairs(*((1.0, float(n)) for n in range(300)))).second is None


def test_a_function_of_two_numbers_has_the_same_again_where_both_are() -> None:
    place = {16: CodePlace("f", "a.cpp", 3, True)}
    call = WatchedCall(16, 1000, 10, 10, 900, 900)
    assert watched_facts(WatchReport((call,)), place, {16: "exp"})[0].number == 10
    assert not watched_facts(WatchReport((call,)), place, {16: "pow"})
    assert not watched_facts(WatchReport((call,)), place, {16: "my_own"})
    other = WatchedCall(16, 1000, 900, 900, 900, 900)  # once it was so, and once not
    assert not watched_facts(WatchReport((call, other)), place, {16: "exp"})


def test_a_report_that_was_cut_short_is_nothing(tmp_path: Path) -> None:
    report = tmp_path / "looks.watched"
    report.write_text('{"calls": [')
    assert read_watched(report) == WatchReport()
    assert read_watched(tmp_path / "none") == WatchReport()
