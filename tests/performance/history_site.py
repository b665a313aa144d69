"""The pages of a year of 400 series: how long they take to write, how large they are, how soon a browser shows them.

Run alone: python -m tests.performance.history_site [ROUNDS]
The history is that of history_store.py: 10 workloads, 40 metrics with intervals each, 365 nights. It is written once,
read once (with the search for changes, told on its own), and then in each round written as pages, and beside that in
a peer's way: one JSON file per series with [commit, value] pairs and an index of all, as asv publishes them, which
holds no intervals, outcomes, machines, change points or pages. A second shape has the same series as 400 workloads.

Limits: 2 s of CPU (median) and 5 MB for all files of the first, 10 s and 40 MB of the second; 1 s until a page is drawn
in the headless browser (median, wall time). Exit code 1 where one is above.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from profkit.core.types import HistorySummary
from profkit.regression.history import open_history
from profkit.regression.trends import summarize_history
from profkit.reporting.site import prepare_folder, site_files, write_site
from tests.browser import started, why_not
from tests.performance.history_store import NIGHTS, WORKLOADS, night, timed

LIMITS = {"pages": (2.0, 5_000_000), "pages of 400 workloads": (10.0, 40_000_000)}  # seconds of CPU, bytes
OPEN = 1.0
# What is there when a page is drawn.
DRAWN = {
    "index.html": "table",
    "workload": "svg.chart",
}


def write_pages(summary: HistorySummary, folder: Path) -> None:
    """All pages, over those of the round before."""
    write_site(prepare_folder(folder), site_files(summary, folder))


def write_graphs(summary: HistorySummary, folder: Path) -> None:
    """A JSON file for each series, and an index."""
    (folder / "graphs").mkdir(parents=True, exist_ok=True)
    index = []
    for number, one in enumerate(summary.series):
        series = one.trend.series
        values = [[point.commit, point.value] for point in series.points]
        (folder / "graphs" / f"{number}.json").write_text(json.dumps(values))
        index.append({"file": f"{number}.json", "workload": series.key.workload, "metric": series.key.metric})
    (folder / "index.json").write_text(json.dumps(index))


def one_each(summary: HistorySummary) -> HistorySummary:
    """The same series, each as a workload of its own with runs of its own."""
    entries, series = [], []
    runs = {entry.id: entry for entry in summary.entries}
    for number, one in enumerate(summary.series):
        name, trend = f"workload-{number}", one.trend
        points = tuple(replace(point, entry=f"{point.entry}-{number}") for point in trend.series.points)
        key = replace(trend.series.key, workload=name)
        series.append(
            replace(one, trend=replace(trend, series=replace(trend.series, key=key, points=points)))
        )
        entries += [
            replace(runs[point.entry], id=f"{point.entry}-{number}", workload=name)
            for point in trend.series.points
        ]
    return HistorySummary(tuple(series), tuple(sorted(entries, key=lambda entry: entry.started)))


def size_of(folder: Path) -> tuple[int, int]:
    """Files, and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def opened(browser: Any, folder: Path, name: str) -> float:
    """Seconds until a page is drawn."""
    page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
    start = time.perf_counter()
    page.goto((folder / name).as_uri())
    page.locator(DRAWN["workload" if name.startswith("workload") else name]).first.wait_for()
    seconds = time.perf_counter() - start
    page.context.close()
    return seconds


def main() -> int:
    """Print all, and what is above its limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rng, above = random.Random(4), 0
    with tempfile.TemporaryDirectory() as where:
        root = Path(where)
        with open_history(root / "history.sqlite") as history:
            for number in range(NIGHTS):
                for workload in range(WORKLOADS):
                    history.add(night(number, workload, rng))
            found: list[HistorySummary] = []
            cpu, wall = timed(lambda: found.append(summarize_history(history)))
        (summary,) = found
        print(
            f"read {len(summary.series)} series and looked for changes: {cpu:.2f} s of CPU, wall {wall:.2f} s"
        )
        ways: dict[str, Callable[[Path], None]] = {
            "pages": lambda folder: write_pages(summary, folder),
            "one JSON per series": lambda folder: write_graphs(summary, folder),
        }
        spread = one_each(summary)
        ways["pages of 400 workloads"] = lambda folder: write_pages(spread, folder)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, write in ways.items():
                times[name].append(timed(lambda write=write, name=name: write(root / name)))  # type: ignore[misc]
        for name, both in times.items():
            cpu, wall = median(cpu for cpu, _ in both), median(wall for _, wall in both)
            files, size = size_of(root / name)
            print(f"{name:24} {cpu:5.2f} s of CPU, wall {wall:5.2f} s; {files:4} files, {size / 1e6:5.2f} MB")
            if name in LIMITS:
                above += (cpu > LIMITS[name][0]) + (size > LIMITS[name][1])
        reason = why_not()
        if reason is not None:
            print(f"not opened: {reason}")
            return int(above > 0)
        with started() as browser:
            for name in ("pages", "pages of 400 workloads"):
                first = min((root / name).glob("workload-*.html")).name
                for page in ("index.html", first):
                    wall = median(opened(browser, root / name, page) for _ in range(rounds))
                    print(f"{name}, {page}: drawn after {wall:.2f} s")
                    above += wall > OPEN
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
