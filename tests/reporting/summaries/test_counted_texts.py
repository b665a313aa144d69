"""Counters, functions, Python, memory and the trace: headline, tables, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.cpu import function_readings, is_sampled
from profkit.analysis.summaries.python import allocation_readings, python_readings
from profkit.core.types import RUN, AllocationLine, Allocations, Hotspot, MemoryGrowth, Profile
from tests import documents
from tests.documents import reading
from tests.reporting.shown import concern_text, rows_of, texts_of


def test_the_cache_headline_names_every_level() -> None:
    rates = [reading(f"cache.l{level}.miss_rate", value) for level, value in ((1, 9.0), (2, 10.3), (3, 0.09))]
    summary = concern_text("cache", *rates)
    assert summary.headline == (
        "Of the accesses that reach each level, 9.0 % miss L1, 10.3 % miss L2 and 0.09 % miss L3 (simulated)."
    )
    assert any("no prefetcher" in note for note in summary.notes)


def test_measured_rates_carry_no_remark_on_simulation() -> None:
    summary = concern_text("cache", reading("cache.l1.miss_rate", 3.0, quality="measured"))
    assert summary.notes == ()
    assert summary.headline.endswith("3.0 % miss L1.")


def test_where_nothing_was_counted_the_reason_and_the_fix_are_said() -> None:
    blind = reading("cache.l1.miss_rate", None, reason="no PMU", fix="apt install valgrind")
    summary = concern_text("cache", blind)
    assert summary.headline == "How well the caches serve is not known: no PMU."
    assert summary.notes == ("L1 data cache misses: unavailable, no PMU (apt install valgrind)",)
    assert summary.readings == (blind,)


def test_branches_and_instructions_have_their_sentence() -> None:
    branches = [reading("branch.count", 2.1e6, "count"), reading("branch.miss_rate", 0.6)]
    assert (
        concern_text("branches", *branches).headline
        == "0.60 % of 2.10 M branches are mispredicted (simulated)."
    )
    core = [
        reading("ipc", 2.134, "instructions/cycle", quality="measured"),
        reading("simd.utilization", 97.0, quality="measured"),
    ]
    assert concern_text("instructions", *core).headline == (
        "2.13 instructions per cycle; 97.0 % of the floating-point arithmetic is SIMD."
    )


def test_functions_are_told_with_their_share_of_misses() -> None:
    summary = texts_of(documents.document())["functions"]
    assert rows_of(summary, "Functions by share of all")[0][1:] == ("83.3 %", "73.3 %")
    assert "functions" not in texts_of(replace(documents.document(), profiles=documents.profiles()[:1]))


def test_function_readings_come_from_the_functions_own_counters() -> None:
    spot = Hotspot(
        "f", 100.0, library="lib.so", counters={"Ir": 100.0, "Dr": 30.0, "Dw": 10.0, "D1mr": 4.0, "D1mw": 0.0}
    )
    cold = Hotspot("cold", 1.0, counters={"Ir": 1.0})
    found = function_readings(
        [Profile("functions by instructions", "instructions", 101.0, (spot, cold), "counted-functions")],
        "valgrind",
    )
    rate = next(r for r in found if r.metric == "cache.l1.miss_rate")
    assert rate.value == pytest.approx(10.0)
    assert (rate.scope.kind, rate.scope.name, rate.scope.id) == ("function", "f", "lib.so")
    assert {r.scope.name for r in found} == {"f"}  # 1 % of the instructions is not worth a verdict


def python_profiles() -> list[Profile]:
    module = Hotspot("<module>", 0.1, 1.0, 1, "lib/torch/__init__.py", 1)
    work = Hotspot("work", 2.0, 2.5, 10, "bench.py", 7)
    return [
        Profile("own time by function", "s", 4.0, (work, module), "own-time"),
        Profile("cumulative time by function", "s", 4.0, (work, module), "cumulative-time"),
        Profile("import time by module", "s", 1.5, (module,), "imports"),
    ]


def test_import_time_stands_apart_from_python_time() -> None:
    known = python_readings(python_profiles())
    assert {r.metric: r.value for r in known} == {"time.python": 2.5, "time.import": 1.5}
    summary = concern_text("python", *known, profiles=tuple(python_profiles()))
    assert summary.headline == (
        "work bench.py:7 has the most own time, 50.0 % of 4.00 s under cProfile, 1.50 s of it imports."
    )
    assert [t.title for t in summary.tables] == [
        "Python functions by own time",
        "Python functions with all they call",
        "Imports, each with what it imports in turn",
    ]
    assert rows_of(summary, summary.tables[2].title) == [("torch/__init__.py", "1.00 s", "66.7 %")]


def test_a_profile_of_samples_is_told_from_those_of_cprofile_and_callgrind() -> None:
    sampled = Profile(
        "cycles by function", "samples", 10.0, (Hotspot("f", 9.0, 10.0, library="libm.so"),), "functions"
    )
    assert is_sampled(sampled)
    assert not any(is_sampled(p) for p in (*python_profiles(), *documents.profiles()))
    libraries = Profile("cycles by library", "samples", 10.0, (Hotspot("libm.so", 9.0),), "libraries")
    summary = concern_text("trace", profiles=(sampled, libraries))
    assert summary.headline == "f [libm.so] takes 90.0 % of the samples, libm.so as a library 90.0 %."
    assert summary.notes[0].startswith("Only 10 samples")


def test_no_trace_is_told_with_its_reason() -> None:
    blind = reading("time.cpu", None, "s", reason="perf was refused", fix="sysctl this")
    summary = concern_text("trace", blind, profiles=())
    assert "perf was refused" in summary.headline
    assert summary.notes == ("To have it: sysctl this",)


def allocations(growth: MemoryGrowth) -> Allocations:
    line = AllocationLine("a/b/c.py", 3, 4096, 2)
    return Allocations(5 << 20, 1, 100, 3 << 20, 1, growth, (line,), (line,), (1, 9), "3.11", ("a note",))


LEAK = MemoryGrowth(1024.0, 1000.0, 1100.0, 50, True, "keeps growing")
QUIET = MemoryGrowth(0.4, -3.0, 6.0, 50, False, "does not grow")
SHORT = MemoryGrowth(None, None, None, 3, None, "5 iterations are too few: 10 are needed")


@pytest.mark.parametrize(
    ("growth", "value", "says"),
    [
        (LEAK, 1000.0, "each iteration leaves 1.00 KiB behind: it leaks"),
        (QUIET, 0.0, "no leak in 50 iterations"),
        (SHORT, None, "whether it leaks is not known (5 iterations are too few: 10 are needed)"),
    ],
)
def test_growth_is_what_is_certain_of_it(growth: MemoryGrowth, value: float | None, says: str) -> None:
    found = allocations(growth)
    peak, grown = allocation_readings(found)
    assert (peak.value, peak.unit) == (float(3 << 20), "B")
    assert grown.value == value
    text = concern_text("memory", peak, grown, allocations=found)
    assert text.headline == f"Python holds 3.00 MiB at most; {says}."
    titles = [(table.title, table.note) for table in text.tables]
    held = ("Lines that hold most", "")
    assert titles == ([("Lines that grow", "from iteration 1 to 9"), held] if growth.leak else [held])


def test_resident_memory_stands_beside_what_tracemalloc_said() -> None:
    rss = reading("memory.rss_peak", float(1 << 30), "B", quality="measured", scope=RUN)
    both = texts_of(replace(documents.document(), readings=(rss,), allocations=allocations(QUIET)))["memory"]
    assert both.headline == "Python holds 3.00 MiB at most; no leak in 50 iterations."
    assert rows_of(both, "Memory of the process") == [("Peak resident memory", "1.00 GiB")]
    alone = concern_text("memory", rss, reading("memory.python_peak", None, "B", reason="no Python here"))
    process = "The process holds 1.00 GiB at most."
    assert alone.headline == f"{process} What Python holds is not known: no Python here."
