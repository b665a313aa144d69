"""A real Metal System Trace against a plain reading of its XML: everything in memory, every sum by brute force."""

from __future__ import annotations

import statistics
import xml.etree.ElementTree as ET
from functools import lru_cache
from pathlib import Path

import pytest

from profkit.profilers.xctrace.report import read_exports
from profkit.runtime.region.record import RegionRecord
from tests.conftest import ROOT

EXTRACT = ROOT / "tests" / "data" / "xctrace" / "m1"
TOC = "toc.xml"


@pytest.fixture
def folder():
    return EXTRACT


@lru_cache(maxsize=8)
def plainly(path: Path) -> list[dict[str, ET.Element | None]]:
    """Rows as elements by mnemonic, references resolved."""
    root = ET.parse(path).getroot()
    known = {element.get("id"): element for element in root.iter() if element.get("id")}
    found = []
    for node in root.iter("node"):
        columns = [column.findtext("mnemonic") for column in node.findall("schema/col")]
        for row in node.findall("row"):
            cells = [known.get(cell.get("ref"), cell) for cell in row]
            found.append(
                {name: None if c.tag == "sentinel" else c for name, c in zip(columns, cells, strict=True)}
            )
    return found


def when(row):
    start = int(row["start"].text)
    return start, start + int(row["duration"].text)


def shown(cell):
    return None if cell is None else cell.get("fmt")


def together(intervals):
    """The length of the union, ns."""
    total, reached = 0, None
    for begin, end in sorted(intervals):
        if reached is None or begin > reached:
            total += end - begin
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def cut(interval, begin, end):
    return max(interval[0], begin), min(interval[1], end)


def whose(folder):
    process = ET.parse(folder / TOC).find("run/info/target/process")
    return f"{process.get('name')} ({process.get('pid')})"


def test_busy_times_are_those_of_a_plain_reading(folder):
    metal = read_exports(folder).metal
    rows, states = (
        plainly(folder / "metal-gpu-intervals.xml"),
        plainly(folder / "metal-gpu-state-intervals.xml"),
    )
    own = [when(row) for row in rows if shown(row["process"]) == whose(folder)]
    assert own
    assert metal.process_busy == pytest.approx(together(own) / 1e9, abs=1e-12)
    active = [when(row) for row in states if shown(row["state"]) == "Active"]
    assert metal.device_busy == pytest.approx(together(active) / 1e9, abs=1e-12)
    told = [when(row) for row in states]
    asked = [when(r)[0] - int(r["start-latency"].text) for r in rows if shown(r["process"]) == whose(folder)]
    begin = min(*(b for b, _ in told), *asked)  # an extract begins with the first work, not with its commit
    assert metal.span == pytest.approx((max(e for _, e in told) - begin) / 1e9, abs=1e-12)


def test_encoders_and_command_buffers_are_those_of_a_plain_reading(folder):
    report = read_exports(folder)
    rows = [r for r in plainly(folder / "metal-gpu-intervals.xml") if shown(r["process"]) == whose(folder)]
    names = {
        shown(r["encoder-id"]): shown(r["encoder-label"])
        for r in plainly(folder / "metal-application-encoders-list.xml")
    }
    times, buffers = {}, set()
    for row in rows:
        label = names.get(shown(row["encoder-id"]), "Compute Command 0")
        encoder, buffer = (label, shown(row["encoder-id"])), shown(row["cmdbuffer-id"])
        times[encoder] = times.get(encoder, 0) + int(row["duration"].text)
        buffers.add(buffer)
    for one in report.metal.encoders:
        own = [ns for (label, _), ns in times.items() if label == one.name]
        assert (one.count, one.seconds) == (len(own), pytest.approx(sum(own) / 1e9))
        assert one.median == pytest.approx(statistics.median(own) / 1e9)
        assert one.longest == pytest.approx(max(own) / 1e9)
    assert sum(kernel.launches for kernel in report.trace.kernels) == len(times)
    assert report.metal.buffers == len(buffers)


def test_a_region_cuts_the_real_trace_as_it_cuts_a_plain_reading(folder, monkeypatch):
    from profkit.profilers.xctrace import report as module
    from profkit.profilers.xctrace.alignment import Alignment

    begin, end = 870_000_123, 880_000_456
    monkeypatch.setattr(module, "find_alignment", lambda *_: Alignment(((begin, end),), 1))
    metal = read_exports(folder, [RegionRecord(1, "trace")]).metal
    assert metal.marked
    rows = plainly(folder / "metal-gpu-intervals.xml")
    own = [cut(when(r), begin, end) for r in rows if shown(r["process"]) == whose(folder)]
    own = [one for one in own if one[1] > one[0]]
    states = plainly(folder / "metal-gpu-state-intervals.xml")
    active = [cut(when(r), begin, end) for r in states if shown(r["state"]) == "Active"]
    assert metal.span == pytest.approx((end - begin) / 1e9)
    assert metal.process_busy == pytest.approx(together(own) / 1e9, abs=1e-12)
    assert metal.device_busy == pytest.approx(together([a for a in active if a[1] > a[0]]) / 1e9, abs=1e-12)
