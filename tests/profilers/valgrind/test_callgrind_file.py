"""Callgrind files read into counters and a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Hotspot, Profile, Report, Scope
from profkit.profilers.valgrind.read import inclusive_costs, read_callgrind
from tests.spoken import spoken_lines

DATA = Path(__file__).resolve().parents[2] / "data" / "valgrind"


def counters(report: Report, scope: Scope | None = None) -> dict[str, float | None]:
    wanted = scope or Scope("run")
    return {c.name: c.value for c in report.counters if c.scope == wanted}


def function(report: Report, name: str) -> Hotspot:
    return next(h for h in report.profiles[0].hotspots if h.function == name)


def written(folder: Path, text: str) -> Path:
    path = folder / "some.out"
    path.write_text(text)
    return path


# ---------------------------------------------------------------- recorded files


@pytest.mark.parametrize(
    ("name", "totals"),
    [
        (
            "callgrind.numpy-sgemm256.roi.out",
            "4608146 1517725 299318 1688 144837 9309 1459 8743 8519 301058 2137 517 316",
        ),
        ("callgrind.torch-add-1M.roi-cold.out", "745712 1318138 135330 1651 66484 65685 1329 66201 65642"),
        ("callgrind.torch-linear.roi-warm.out", "1157900 357415 27666 3415 22140 4847 336 296 11"),
    ],
)
def test_counters_are_the_totals_line_whatever_the_summary_line_says(
    reports: Path, name: str, totals: str
) -> None:
    report = read_callgrind(reports / "valgrind" / name)
    assert list(counters(report).values()) == [float(word) for word in totals.split()]
    assert report.warnings == ()
    assert report.version == "3.19.0"


def test_the_hottest_function_of_a_matrix_product_is_its_kernel(reports: Path) -> None:
    report = read_callgrind(reports / "valgrind" / "callgrind.numpy-sgemm256.roi.out")
    hottest = report.profiles[0].hotspots[0]
    assert hottest.function == "sgemm_kernel_HASWELL"
    assert hottest.own == 4203525
    assert "openblas" in (hottest.library or "")
    assert hottest.counters["D1mr"] > 0.6 * 144837


def test_a_region_restricts_to_its_dump_and_the_run_adds_them_up() -> None:
    report = read_callgrind(DATA / "kernels.l2.callgrind")
    add, calls = (counters(report, Scope("region", name)) for name in ("add", "calls"))
    assert add["Ir"] == 393_234
    assert calls["Ir"] == 6_594
    assert counters(report)["Ir"] == 393_234 + 6_594
    assert report.facts["entries"] == "3"
    assert report.facts["caches at first entry"] == "cold"
    assert report.facts["LL cache"] == "262144 B, 64 B, 16-way associative"


def test_a_recursive_function_is_one_function_and_costs_its_calls_once() -> None:
    report = read_callgrind(DATA / "kernels.jumps.callgrind")
    fib = function(report, "fib")
    assert fib.own == fib.total == 6507
    assert {h.function for h in report.profiles[0].hotspots} == {"add", "fib", "even", "odd", "main"}


def test_calls_of_a_region_are_unknown_since_callgrind_counts_them_outside_of_it_too() -> None:
    report = read_callgrind(DATA / "kernels.l2.callgrind")
    assert all(h.calls is None for h in report.profiles[0].hotspots)


@pytest.mark.parametrize(
    ("what", "lines", "own"),
    [
        ("absolute lines", "3 5\n4 6\n", 11),
        ("relative lines", "3 5\n+1 6\n-2 1\n* 1\n", 13),
        ("costs left out", "3 5 1\n4\n5 0 7\n", 5),
        ("double and trailing blanks", "3  5\n4 6 \n5 1\t2\n", 12),
        ("a call's cost is not the caller's own", "3 5\ncfn=other\ncalls=2 9\n4 100\n5 6\n", 11),
        ("a jump has no costs", "3 5\njump=4 +2\n3\njcnd=1/4 *\n4\n6 6\n", 11),
        ("inlined code belongs to its function", "3 5\nfi=b.h\n9 6\nfe=a.c\n4 1\n", 12),
        ("windows line ends", "3 5\r\n4 6\r\n", 11),
        ("comments", "# a\n3 5\n", 5),
    ],
)
def test_own_costs(tmp_path: Path, what: str, lines: str, own: int) -> None:
    report = read_callgrind(written(tmp_path, f"events: Ir Dr\n\nfl=a.c\nfn=f\n{lines}"))
    assert function(report, "f").own == own


# ---------------------------------------------------------------- bad input

WHOLE = (DATA / "kernels.l2.callgrind").read_bytes()


@pytest.mark.parametrize("keep", [0.3, 0.5, 0.7, 0.97])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "cut"
    path.write_bytes(WHOLE[: int(len(WHOLE) * keep)])
    with pytest.raises(UnreadableReport, match=r"cut short|cannot read|costs expected"):
        read_callgrind(path)


def test_a_file_that_was_cut_inside_its_last_totals_is_doubted(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(WHOLE[: WHOLE.index(b"totals: 6594") + 13])
    (warning,) = spoken_lines(read_callgrind(path).warnings)
    assert "may be damaged" in warning


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("empty", ""),
        ("another writer's events", "version: 1\ncreator: xdebug 3.3.1\nevents: Time_(10ns)\nfn=f\n1 2\n"),
        ("no events", "version: 1\ncreator: callgrind-3.19.0\n"),
        ("words for costs", "events: Ir\nfn=f\n1 many\n"),
        ("more costs than events", "events: Ir\nfn=f\n1 2 3\n"),
        ("a number of 400 digits", "events: Ir\nfn=f\n1 " + "9" * 400 + "\n"),
        ("a number of 5000 digits", "events: Ir\nfn=f\n1 " + "9" * 5000 + "\n"),
        ("less than nothing", "events: Ir\nfn=f\n1 -5\n"),
        ("an underflow", "events: Ir\nfn=f\n1 18446744073708398244\n"),
        ("costs before events", "fn=f\n1 2\n"),
        ("calls without a number", "events: Ir\nfn=f\ncalls=x 1\n1 2\n"),
        ("prose", "events: Ir\nfn=f\n1 2\nThis is not a profile at all\n"),
        ("a million events", "events: " + "e " * 1_000_000 + "\nfn=f\n1 2\n"),
        ("an endless line", "events: Ir\nfn=" + "f" * 5_000_000),
    ],
)
def test_what_is_no_callgrind_file_is_refused_with_a_sentence(tmp_path: Path, what: str, text: str) -> None:
    with pytest.raises(UnreadableReport):
        read_callgrind(written(tmp_path, text))


def test_a_region_that_was_never_entered_is_said(tmp_path: Path) -> None:
    text = "# callgrind format\ncreator: callgrind-3.19.0\nevents: Ir\nsummary: 0\n\n\ntotals: 0\n"
    report = read_callgrind(written(tmp_path, text))
    assert "never entered" in spoken_lines(report.warnings)[0]


def test_totals_that_contradict_the_lines_are_said(tmp_path: Path) -> None:
    report = read_callgrind(written(tmp_path, "events: Ir\nfn=f\n1 200\ntotals: 300\n"))
    assert counters(report) == {"Ir": 200.0}
    assert "300" in spoken_lines(report.warnings)[0]


# ---------------------------------------------------------------- sniffing


def lines_of(path: Path) -> Profile:
    return next(one for one in read_callgrind(path).profiles if one.kind == "counted-lines")


def test_the_line_of_the_misses_is_that_of_the_inlined_code_in_its_own_file() -> None:
    lines = lines_of(DATA / "list.lines.callgrind")
    worst = max(lines.hotspots, key=lambda one: one.counters["DLmr"])
    assert (worst.function, worst.file, worst.line) == ("walk", "step.h", 3)
    assert worst.counters["DLmr"] == 63489  # of 65,536 nodes
    assert lines.total == 589832  # all that was collected stands in this function


def test_lines_are_followed_over_addresses_and_calls() -> None:
    lines = lines_of(DATA / "kernels.l3.callgrind")
    line = {(one.function, one.line): one for one in lines.hotspots}
    assert {one.file for one in lines.hotspots} == {"kernels.c"}
    assert line["add", 5].counters["D1mr"] == 65538  # the loop is one line of kernels.c


Calls = dict[tuple[str, str], int]
CIRCLE = {("a", "b"): 9, ("b", "a"): 8}


@pytest.mark.parametrize(
    ("what", "own", "calls", "expected"),
    [
        ("a leaf costs its own", {"a": 5}, {}, {"a": 5}),
        ("a caller costs its calls", {"a": 5, "b": 7}, {("a", "b"): 7}, {"a": 12, "b": 7}),
        ("recursion is counted once", {"a": 10}, {("a", "a"): 30}, {"a": 10}),
        ("a circle is no more than all", {"a": 6, "b": 4}, CIRCLE, {"a": 10, "b": 10}),
        ("a caller that did nothing itself", {"b": 7}, {("a", "b"): 7}, {"a": 7, "b": 7}),
        ("never above the total", {"a": 5, "b": 7}, {("a", "b"): 10**12}, {"a": 12, "b": 7}),
    ],
)
def test_inclusive(what: str, own: dict[str, int], calls: Calls, expected: dict[str, int]) -> None:
    assert inclusive_costs(own, calls, sum(own.values())) == expected
