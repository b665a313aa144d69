"""How large charts are and how long they take: 20 trends of a year, a run's page with its charts, 5,000 stacks.

Run alone: python tests/performance/html_charts.py
Limits: 400 kB for a page with 20 trends of 365 nights, 300 kB for the page of the recorded report with the most
kernels, 60 kB for a flame graph of 5,000 stacks. Exit code 1 where one is above. Times are printed and not judged.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from profkit.analysis.stacks.files import flame_of
from profkit.core.types import ChangePoint, Frame, Point, Segment, Series, SeriesKey, Stacks, Trend
from profkit.profiling.summarize import summarize_report
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.html import page
from profkit.reporting.html.escape import island
from profkit.reporting.html.graphs import flame_data
from profkit.reporting.view import Section, View
from tests.reporting.shown import run_page as render

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"
NIGHTS, TRENDS, STACKS = 365, 20, 5000


def trend(number: int) -> Trend:
    """A year of one metric with an interval each night, one change and one new epoch."""
    dice = random.Random(number)
    first = datetime(2026, 1, 1, 3, tzinfo=timezone.utc)
    points = []
    for night in range(NIGHTS):
        value = 4.1e-3 * (1 + dice.gauss(0, 0.01)) * (1.05 if night >= 200 else 1.0)
        started = (first + timedelta(days=night)).isoformat()
        points.append(Point(f"run-{night}", started, "m", value, value * 0.99, value * 1.01, "abcdef1234567"))
    series = Series(SeriesKey(f"workload {number}", "cuda", "time.median"), "s", "lower", tuple(points))
    epochs = (Segment(0, 99, "begin"), Segment(100, NIGHTS - 1, "machine"))
    return Trend(series, epochs, (ChangePoint(200, 4.1e-3, 4.3e-3),))


def stacks() -> Stacks:
    """5,000 distinct stacks of 800 C++ functions, 6 to 34 frames deep."""
    dice = random.Random(7)
    frames = [Frame(f"at::native::function_{i}<float, {i}>", "libtorch_cpu.so") for i in range(800)]
    made: dict[tuple[Frame, ...], float] = {}
    while len(made) < STACKS:
        stack = dice.choices(frames[:40], k=4) + dice.choices(frames, k=dice.randint(2, 30))
        made[tuple(stack)] = dice.random() ** 3
    return Stacks("cpu-clock", "s", made)


def trends() -> str:
    """A page of 20 trends."""
    charts = Charts(tuple(trend_chart(trend(number)) for number in range(TRENDS)))
    return page.render(View("trends", (Section("Trends", (charts,)),)))


def flame() -> str:
    """The data of one flame graph."""
    found = flame_of(stacks())
    assert found is not None
    return island(flame_data(found))


def main() -> int:
    """Print size and time of each; 1 where one is too large."""
    document = summarize_report(REPORT)
    cases: list[tuple[str, Callable[[], str], int]] = [
        (f"{TRENDS} trends of {NIGHTS} nights", trends, 400),
        ("a report of 12 kernels with every counter", lambda: render(document), 300),
        (f"a flame graph of {STACKS} stacks", flame, 60),
    ]
    above = 0
    for name, make, limit in cases:
        start = time.perf_counter()
        size = len(make().encode()) / 1000
        seconds = time.perf_counter() - start
        above += size > limit
        print(f"{name}: {size:.0f} kB (limit {limit}), {1000 * seconds:.0f} ms")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
