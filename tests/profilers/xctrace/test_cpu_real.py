"""Hot spots of real recordings, counted a second time by ElementTree."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from profkit.analysis.stacks.files import flame_of
from profkit.profilers.xctrace.report import read_exports
from profkit.profiling.summarize import summarize_report
from profkit.reporting.views.summaries import summary_texts

TESTS = Path(__file__).resolve().parents[2]
EXTRACT = TESTS / "data" / "xctrace" / "m1"
FIXTURES = Path(os.environ.get("PROFKIT_FIXTURES", TESTS.parent.parent / "shared" / "fixtures"))
M1 = FIXTURES / "xctrace" / "m1-metal-system-trace"
PLACES = [
    EXTRACT,
    pytest.param(
        M1, marks=pytest.mark.skipif(not M1.is_dir(), reason="needs the recorded reports beside the project")
    ),
]


def own_time(path: Path) -> Counter:
    """Nanoseconds by innermost function, of every row."""
    root = ET.parse(path).getroot()
    known = {element.get("id"): element for element in root.iter() if element.get("id")}

    def whole(element: ET.Element) -> ET.Element:
        return known[element.get("ref")] if element.get("ref") else element

    found: Counter = Counter()
    for row in root.iter("row"):
        cells = [whole(cell) for cell in row]
        weight = next(int(cell.text) for cell in cells if cell.tag == "weight")
        stack = next((cell for cell in cells if cell.tag == "backtrace"), None)
        name = "[no stack recorded]" if stack is None else whole(stack[0]).get("name")
        found["[unknown]" if name.startswith("0x") else name] += weight
    return found


@pytest.mark.parametrize("folder", PLACES)
def test_own_time_by_function_is_that_of_every_row(folder):
    profile = next(p for p in read_exports(folder).profiles if p.title == "CPU time by function")
    told: Counter = Counter()
    for spot in profile.hotspots:
        told[spot.function] += round(spot.own * 1e9)
    assert +told == own_time(folder / "time-profile.xml")


@pytest.mark.parametrize("folder", PLACES)
def test_a_table_alone_has_hot_spots_and_a_flame_graph(folder):
    report = read_exports(folder / "time-profile.xml")
    flame = flame_of(report.stacks[0])
    assert flame.total == pytest.approx(sum(own_time(folder / "time-profile.xml").values()) / 1e9)
    texts = summary_texts(summarize_report(folder / "time-profile.xml"))
    trace = next(text for text in texts if text.concern == "trace")
    assert [table.title for table in trace.tables] == ["Functions by samples", "Libraries by samples"]
