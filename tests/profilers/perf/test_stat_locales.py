"""Reports of perf stat as people had them: numbers of other locales, separators of their own, JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import summarize_report
from tests.profilers.perf.test_stat_shapes import told

VALUES = {"task-clock": 0.41, "page-faults": 44, "cycles": 788001, "instructions": 538002}
ROWS = (
    ("0.41", "msec", "task-clock", "406721", "100.00", "0.602", "CPUs utilized"),
    ("44", "", "page-faults", "406721", "100.00", "0.108", "M/sec"),
    ("788001", "", "cycles", "411478", "100.00", "1.915", "GHz"),
    ("538002", "", "instructions", "411478", "100.00", "0.68", "insn per cycle"),
)


def read(tmp_path: Path, text: str) -> dict[str, object]:
    path = tmp_path / "stat"
    path.write_text(text)
    return told(recognise_format(path).read(path))


@pytest.mark.parametrize("separator", ["/", " ", "~", "@", "';'", '","', " ;", " | "])
@pytest.mark.parametrize("decimal", [".", ","])
def test_any_separator_is_told_by_the_content(tmp_path: Path, separator: str, decimal: str) -> None:
    """`-x / ` to see a decimal comma, `-x ' '` for awk, and quotes that no shell took off."""
    text = "".join(f"{separator.join(row).replace('.', decimal)}\n" for row in ROWS)
    assert read(tmp_path, text) == VALUES


def test_lines_of_a_log_are_no_counts_with_a_blank_between(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match="not a report that profkit can read"):
        read(tmp_path, "0.25 s epoch 3 99.50\n0.24 s epoch 4 99.60\n")


def test_rows_of_cpus_in_intervals_with_a_decimal_comma_add_up(tmp_path: Path) -> None:
    cells = ("0.250269405", 0, 3000), ("0.250269405", 1, 200), ("0.462766311", 0, 10), ("0.462766311", 1, 4)
    rows = "".join(f"     {at} ;CPU{cpu} ;{n} ; ;branches ;250166318 ;100,00 ; ;\n" for at, cpu, n in cells)
    assert read(tmp_path, f"# started on Thu May  2 10:04:18 2019\n\n{rows}") == {"branches": 3214}


JSON = """{"counter-value" : "0,410000", "unit" : "msec", "event" : "task-clock", "event-runtime" : 406721, "pcnt-running" : 100,00, "metric-value" : 0,602, "metric-unit" : "CPUs utilized"}
{"counter-value" : "44,000000", "unit" : "", "event" : "page-faults", "event-runtime" : 406721, "pcnt-running" : 100,00}
{"counter-value" : "788001,000000", "unit" : "", "event" : "cycles", "event-runtime" : 41147, "pcnt-running" : 10,00, "metric-value" : 1,915, "metric-unit" : "GHz"}
{"counter-value" : "538002,000000", "unit" : "", "event" : "instructions", "event-runtime" : 41147, "pcnt-running" : 10,00, "metric-value" : 0,68, "metric-unit" : "insn per cycle"}
{"counter-value" : "<not counted>", "unit" : "", "event" : "branches", "event-runtime" : 0, "pcnt-running" : 0,00}
"""  # noqa: E501


@pytest.mark.parametrize("locale", ["decimal comma", "C"])
def test_json_is_read_with_a_decimal_comma_too(tmp_path: Path, locale: str) -> None:
    """perf writes the locale's comma into it, which is no JSON."""
    text = (
        JSON
        if locale != "C"
        else JSON.replace(",0", ".0").replace(",6", ".6").replace(",9", ".9").replace(",4", ".4")
    )
    path = tmp_path / "stat.json"
    path.write_text(text)
    counters = recognise_format(path).read(path).counters
    assert told(recognise_format(path).read(path)) == {**VALUES, "branches": "not-counted"}
    assert {counter.name: counter.share for counter in counters}["cycles"] == pytest.approx(0.1, abs=0.02)


def test_the_mean_of_several_runs_is_a_count_in_json_too(tmp_path: Path) -> None:
    row = '"event" : "cycles", "variance" : 1.25, "event-runtime" : 9, "pcnt-running" : 100.00'
    assert read(tmp_path, f'{{"counter-value" : "788000.666667", "unit" : "", {row}}}\n') == {
        "cycles": 788001
    }


@pytest.mark.parametrize(
    ("printed", "count"),
    [("2,40,034", 240_034), ("9,01,02,03,456", 9_010_203_456), ("240,034", 240_034), ("34", 34)],
)
def test_indian_groups_are_whole_counts(tmp_path: Path, printed: str, count: int) -> None:
    row = f"    {printed}      page-faults       #   12.345 K/sec"
    assert read(tmp_path, f" Performance counter stats for './a':\n\n{row}\n")["page-faults"] == count


def test_a_core_that_ran_for_2_percent_of_the_time_does_not_count_for_the_other(tmp_path: Path) -> None:
    """perf scales it up; to add it to what the busy kind of core counted would give a third too much."""
    path = tmp_path / "hybrid.csv"
    path.write_text(
        "6720143,,cpu_atom/instructions/,16548968,2.00,,\n20875198,,cpu_core/instructions/,622042486,97.00,,\n"
        "3100000,,cpu_atom/cycles/,16548968,2.00,,\n11000000,,cpu_core/cycles/,622042486,97.00,,\n"
    )
    readings = {reading.metric: reading.value for reading in summarize_report(path).readings}
    assert readings["ipc"] == pytest.approx(20875198 / 11000000)
