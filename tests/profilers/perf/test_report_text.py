"""The table of `perf report --stdio` in, a profile out; truths from the files by other means."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.analysis.stacks.merge import PYTHON
from profkit.core.errors import UnreadableReport
from profkit.core.types import Hotspot, Report
from profkit.profilers.perf.report_text import looks_like_report_text, read_report_text

DATA = Path(__file__).parent.parent.parent / "data" / "perf"

COLUMNS = """\
# Total Lost Samples: 3
#
# Samples: 1K of event 'cycles:P'
# Event count (approx.): 5000
#
# Children      Self  Command  Shared Object      Symbol
# ........  ........  .......  .................  ......................
#
    60.00%    10.00%  my app   libc.so.6          [.] memcpy
            |
             --29.92%--main
                       12.00% not a row
    30.00%    20.00%  other    libc.so.6          [.] memcpy
     5.00%     5.00%  my app   [kernel.kallsyms]  [k] do_syscall_64
     1.00%     0.50%  my app   app                [.] operator()(int, char)


#
# (Tip: something)
#
"""


def read(tmp_path: Path, text: str) -> Report:
    path = tmp_path / "report.txt"
    path.write_text(text)
    assert looks_like_report_text(text.encode()[:65536])
    return read_report_text(path)


def test_columns_are_told_apart_and_threads_of_one_function_added_up(tmp_path: Path):
    report = read(tmp_path, COLUMNS)
    (profile,) = report.profiles
    assert (profile.title, profile.unit, profile.total) == ("cycles:P by function", "%", 100)
    assert profile.hotspots == (
        Hotspot("memcpy", 30.0, 90.0, library="libc.so.6"),
        Hotspot("do_syscall_64", 5.0, 5.0, library="[kernel]"),
        Hotspot("operator()(int, char)", 0.5, 1.0, library="app"),
    )
    assert report.facts == {"events": "cycles:P", "samples": "1K", "event count": "5000"}
    assert report.warnings == ("perf lost 3 samples while recording",)


def test_a_comma_for_the_decimal_point_is_understood(tmp_path: Path):
    text = re.sub(r"(\d)\.(\d\d%)", r"\1,\2", COLUMNS)
    assert read(tmp_path, text).profiles == read(tmp_path, COLUMNS).profiles


def test_rows_of_one_thread_under_one_name_have_no_inclusive_share(tmp_path: Path):
    text = COLUMNS.replace("other ", "my app").replace(
        "app                [.] ope", "libc.so.6          [.] ope"
    )
    memcpy = read(tmp_path, text).profiles[0].hotspots[0]
    assert (memcpy.own, memcpy.total) == (30.0, None)  # one may have called the other


def test_several_events_are_several_profiles(tmp_path: Path):
    second = COLUMNS.replace("cycles:P", "instructions").replace("Lost Samples: 3", "Lost Samples: 0")
    report = read(tmp_path, COLUMNS + second)
    assert [p.title for p in report.profiles] == ["cycles:P by function", "instructions by function"]


@pytest.mark.parametrize("name", ["perf_clinfo.report.txt", "perf_vulkaninfo.report.txt"])
def test_a_recorded_report_with_call_graphs_has_its_rows_and_nothing_else(fixtures: Path, name: str):
    path = fixtures / "perf" / "amd-e-series-perf6.12" / name
    own: dict[str, float] = defaultdict(float)
    for line in path.read_text(errors="replace").splitlines():
        if row := re.match(r" +[\d.]+% +([\d.]+)%  .*? \[[.k]\] (.*?) *$", line):
            own[row[2]] += float(row[1])
    assert len(own) > 300
    assert looks_like_report_text(path.read_bytes()[:65536])
    (profile,) = read_report_text(path).profiles
    read_own: dict[str, float] = defaultdict(float)
    for hotspot in profile.hotspots:
        read_own[hotspot.function] += hotspot.own
    assert dict(read_own) == pytest.approx(own, abs=0.001)
    # All rows together are all there was; each is rounded to 0.01.
    assert sum(read_own.values()) == pytest.approx(100, abs=0.1)
    top = profile.hotspots[0]
    assert top.function == ("validate_instr" if "clinfo" in name else "__strcmp_sse2")


def test_a_recorded_report_with_separators(fixtures: Path):
    path = fixtures / "perf" / "vm-without-pmu-perf6.1" / "report.py313-perf_jit.csv.txt"
    (profile,) = read_report_text(path).profiles
    assert sum(h.counters["samples"] for h in profile.hotspots) == 255
    outer = next(h for h in profile.hotspots if h.function == "outer")
    assert (outer.own, outer.total, outer.library) == (0.0, 94.51, PYTHON)
    rows = re.findall(r"^ *[\d.]+% +\|.*\|(.*)\|\[[.k]\] (.*)$", path.read_text(), re.MULTILINE)
    # perf has an image for each compiled Python function, and a function of one name and file may have several.
    assert len(profile.hotspots) == len({(re.sub(r"jitted.*", "python", dso).strip(), f) for dso, f in rows})


def test_own_recordings_in_three_shapes_agree():
    children = read_report_text(DATA / "report.children.txt").profiles[0]
    separated = read_report_text(DATA / "report.separator.txt").profiles[0]
    assert {(h.function, h.own) for h in separated.hotspots} == {
        (h.function, h.own) for h in children.hotspots if h.own > 0
    }
    libraries = read_report_text(DATA / "report.call-graph.txt").profiles[0]
    assert libraries.title == "cpu-clock by library"
    name = "libpython3.13.so.1.0"
    of_functions = sum(h.own for h in children.hotspots if h.library == name)
    of_library = next(h.own for h in libraries.hotspots if h.library == name)
    assert of_library == pytest.approx(of_functions, abs=0.1)
    assert all(h.total is None or h.total <= 100 for h in libraries.hotspots)


def test_an_empty_report_is_refused(fixtures: Path):
    path = fixtures / "perf" / "amd-e-series-perf6.12/perf_clinfo.report.stderr"
    assert not looks_like_report_text(path.read_bytes()[:65536])
    with pytest.raises(UnreadableReport, match="holds no table"):
        read_report_text(path)


@pytest.mark.parametrize(
    "data", [b"", b"hello\n", b"PERFILE2" + bytes(90), b"#\n# Overhead\n#\n", b"    1.00%  x\n"]
)
def test_what_is_no_report_is_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "in"
    path.write_bytes(data)
    assert not looks_like_report_text(data)
    with pytest.raises(UnreadableReport):
        read_report_text(path)


@given(st.integers(0, len(COLUMNS)), st.lists(st.tuples(st.integers(0, 900), st.characters(codec="utf-8"))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
def test_cut_and_damaged_reports_are_read_or_refused(tmp_path: Path, end: int, damage: list[tuple[int, str]]):
    text = list(COLUMNS[:end])
    for place, character in damage:
        if text:
            text[place % len(text)] = character
    path = tmp_path / "in"
    path.write_text("".join(text), encoding="utf-8")
    try:
        report = read_report_text(path)
    except UnreadableReport:
        return
    assert all(0 <= h.own < 3000 for profile in report.profiles for h in profile.hotspots)


def test_a_report_with_a_header_and_no_sample_is_read_and_says_so(fixtures: Path) -> None:
    report = read_report_text(fixtures / "perf" / "vm-without-pmu-perf6.1" / "report.header-only.txt")
    assert report.version == "6.1.187"
    assert report.profiles == ()
    assert report.warnings == ("the report has a header and no sample",)
