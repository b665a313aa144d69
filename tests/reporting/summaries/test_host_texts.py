"""Counters, functions, Python, memory and Triton: headline, tables, and what is missing."""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.summaries.host import allocation_readings, python_readings
from profkit.core.types import (
    AllocationLine,
    Allocations,
    CodeLine,
    Fact,
    Hotspot,
    MemoryGrowth,
    Profile,
)
from profkit.profilers.cprofile import read_cprofile
from profkit.profilers.host.stacks import read_stacks
from tests import documents
from tests.conftest import ROOT
from tests.documents import reading
from tests.reporting.shown import concern_section, notes_of, rows_of, sections_of, tables_of


def test_counters_have_their_values_in_the_headline_with_how_they_are_known() -> None:
    rates = [reading(f"cache.l{level}.miss_rate", value) for level, value in ((1, 9.0), (2, 10.3), (3, 0.09))]
    summary = concern_section("cache", *rates)
    first = "L1 data cache misses 9.0 % (simulated), L2 cache misses 10.3 % (simulated)"
    assert summary.headline == f"{first} and L3 cache misses 0.09 % (simulated)."
    assert any("no prefetcher" in note for note in notes_of(summary))
    measured = concern_section("cache", reading("cache.l1.miss_rate", 3.0, quality="measured"))
    assert (notes_of(measured), measured.headline) == ((), "L1 data cache misses 3.0 %.")


def test_where_nothing_was_counted_the_reason_and_the_fix_are_said() -> None:
    blind = reading("cache.l1.miss_rate", None, reason="no PMU", fix="apt install valgrind")
    summary = concern_section("cache", blind)
    assert summary.headline == "How well the caches serve is not known: no PMU."
    assert notes_of(summary) == ("L1 data cache misses: unavailable, no PMU (apt install valgrind)",)


def test_functions_are_told_with_their_share_of_misses() -> None:
    summary = sections_of(documents.document())["functions"]
    assert rows_of(summary, "Functions by share of all")[0][1:] == ("83.3 %", "73.3 %")
    assert "functions" not in sections_of(replace(documents.document(), profiles=documents.profiles()[:1]))


# ---------------------------------------------------------------- Python and samples


def python_profiles() -> list[Profile]:
    module = Hotspot("<module>", 0.1, 1.0, 1, "lib/torch/__init__.py", 1)
    work = Hotspot("work", 2.0, 2.5, 10, "bench.py", 7)
    return [
        Profile("own time by function", "s", 4.0, (work, module), "own-time"),
        Profile("import time by module", "s", 1.5, (module,), "imports"),
    ]


def test_import_time_stands_apart_from_python_time() -> None:
    known = python_readings(python_profiles())
    assert {r.metric: r.value for r in known} == {"time.python": 2.5, "time.import": 1.5}
    summary = concern_section("python", *known, profiles=tuple(python_profiles()))
    assert summary.headline == "work bench.py:7 takes 50.0 % of 4.00 s; imports take 1.50 s."
    assert rows_of(summary, "Python functions by own time")[0] == (
        "work bench.py:7",
        "10",
        "2.50 s",
        "250 ms",
        "2.00 s",
    )
    imports = "Imports, each with what it imports in turn"
    assert rows_of(summary, imports) == [("torch/__init__.py", "6.7 %", "66.7 %", "1")]


def test_an_import_that_the_end_of_cprofile_cut_is_no_whole_one() -> None:
    """The window had ended within it: of an import of 4.6 s 1.5 were seen, and shown as all of it."""
    cut = [replace(profile, partial=True) for profile in python_profiles()]
    doubts = {reading.metric: reading.doubt for reading in python_readings(cut)}
    assert {metric: doubt and doubt.code for metric, doubt in doubts.items()} == {
        "time.python": "ended-early",
        "time.import": "ended-early",
    }
    summary = concern_section("python", *python_readings(cut), profiles=tuple(cut))
    assert "imports take at least 1.50 s" in summary.headline
    module = Hotspot("torch", 4.6, 4.6)
    sampled = (
        Profile("", "s", 0.5, (Hotspot("work", 0.4),), "sampled-functions"),
        Profile("", "s", 4.6, (module,), "sampled-imports"),
    )
    of_samples = {reading.metric: reading for reading in python_readings((*cut, *sampled))}
    assert of_samples["time.import"].value == 4.6
    assert of_samples["time.import"].source.tool == "stacks"
    whole = {reading.metric: reading for reading in python_readings((*python_profiles(), *sampled))}
    assert whole["time.import"].source.tool == "cprofile"


NESTED = """
def leaf(n): return sorted(range(n, 0, -1))
def fall(n): return leaf(n) if n < 3 else fall(n - 1)
def middle():
    for n in range(60): leaf(200); fall(n % 9)
def main():
    for _ in range(5): middle()
main()
"""


@pytest.mark.parametrize(
    ("title", "key"), [("cumulative", pstats.SortKey.CUMULATIVE), ("own", pstats.SortKey.TIME)]
)
def test_a_cprofile_file_has_the_twenty_functions_that_pstats_prints_in_its_order(
    tmp_path: Path, title: str, key: pstats.SortKey
) -> None:
    file = tmp_path / "output.prof"
    profiler = cProfile.Profile()
    profiler.run(NESTED)
    profiler.dump_stats(file)
    stats = pstats.Stats(str(file)).sort_stats(key)
    report = read_cprofile(file)
    summary = concern_section("python", *python_readings(report.profiles), profiles=report.profiles)
    rows = rows_of(summary, f"Python functions by {title} time")
    listed = stats.fcn_list[:20]  # type: ignore[attr-defined]
    assert len(rows) == min(20, len(stats.stats))  # type: ignore[attr-defined]
    # The last ones take no measurable time, in any order.
    assert (
        [float(row[1].partition("/")[0].replace(",", "")) for row in rows[:4]]
        == [
            stats.stats[function][1]  # type: ignore[attr-defined]
            for function in listed[:4]
        ]
    )
    if title == "cumulative":
        assert any(row[0].startswith("main ") for row in rows)
        fall = next(row for row in rows if row[0].startswith("fall "))
        assert "/300" in fall[1]  # all calls, and those that fall does not make itself


def test_a_sampled_function_stands_at_its_hottest_line() -> None:
    profiles = read_stacks(ROOT / "tests" / "data" / "stacks" / "pool.jsonl").profiles
    summary = concern_section("python", reading("time.python", 1.0, "s"), profiles=profiles)
    assert summary.headline.startswith("collatz collatz.py:9 takes 49")
    functions, imports, threads = tables_of(summary)
    assert functions.rows[0][0] == "collatz collatz.py:9"
    assert imports.rows[0][0] == "multiprocessing"
    assert threads.title == "Python threads"


# ---------------------------------------------------------------- memory


def allocations(growth: MemoryGrowth) -> Allocations:
    line = AllocationLine("a/b/c.py", 3, 4096, 2)
    return Allocations(5 << 20, 3 << 20, growth, (line,), (line,), (Fact.message("a note"),))


LEAK = MemoryGrowth(1024.0, 1000.0, 1100.0, 50, True, Fact("keeps-growing"))
QUIET = MemoryGrowth(0.4, -3.0, 6.0, 50, False, Fact("keeps-its-size"))
SHORT = MemoryGrowth(None, None, None, 3, None, Fact.of("few-iterations", count=5, needed=10))


@pytest.mark.parametrize(
    ("growth", "value", "says"),
    [
        (LEAK, 1000.0, "each iteration leaves 1.00 KiB behind: it leaks"),
        (QUIET, 0.0, "no leak in 50 iterations"),
        (SHORT, None, "whether it leaks is not known (5 iterations are too few: at least 10 are needed)"),
    ],
)
def test_growth_is_what_is_certain_of_it(growth: MemoryGrowth, value: float | None, says: str) -> None:
    found = allocations(growth)
    peak, grown = allocation_readings(found)
    assert (peak.value, peak.unit) == (float(3 << 20), "B")
    assert grown.value == value
    text = concern_section("memory", peak, grown, allocations=found)
    assert text.headline == f"Python holds 3.00 MiB at most; {says}."
    held = [*(["Lines that grow"] if growth.leak else []), "Lines that hold most"]
    assert [table.title for table in tables_of(text)] == held


def test_the_peak_of_a_part_of_the_run_is_at_least_that_and_stands_beside_the_resident_memory() -> None:
    early = Fact.of("ended-early", name="tracemalloc", seconds=2.0)
    found = replace(allocations(QUIET), notes=(early,))
    peak, grown = allocation_readings(found)
    assert peak.doubt == early
    resident = reading("memory.rss_peak", float(200 << 20), "B", quality="measured")
    text = concern_section("memory", resident, peak, grown, allocations=found)
    assert text.headline == (
        "Peak resident memory 200 MiB; Python holds at least 3.00 MiB; no leak in 50 iterations."
    )


def test_a_thread_ran_for_no_more_than_the_time_in_which_it_was_there() -> None:
    """Eight workers that wait have together far more time than the program computes."""
    rows = (Hotspot("worker", 1.0, 59.3), Hotspot("MainThread", 9.0, 9.1))
    profile = Profile("Python threads", "s", 10.0, rows, "sampled-threads")
    lines = tuple(CodeLine("work", "/app.py", at, seconds) for at, seconds in ((3, 6.0), (5, 4.0)))
    work = Hotspot("work", 10.0, 10.0, file="/app.py", line=3, lines=lines)
    functions = Profile("Python functions", "s", 10.0, (work,), "sampled-functions")
    text = concern_section("python", reading("time.import", 0.1, "s"), profiles=(functions, profile))
    assert rows_of(text, "Python threads") == [
        ("MainThread", "90.0 %", "98.9 %"),
        ("worker", "10.0 %", "1.7 %"),
    ]
    assert text.headline.startswith("work app.py:5 takes 100.0 %")  # line 3 is its def
