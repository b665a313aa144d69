"""Which tests take most of the processor: `python -m pytest -p tests.costs --costs 20`, as check.sh calls it.

The seconds of a test are those of its process and of the programs that it started and waited for. They include its
fixtures: one that many tests share counts for the first of them. Other than the time on the clock they hardly depend
on what else the machine does. A browser that many tests share is waited for at the end alone, so it is asked what it
has taken so far.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

_before = 0.0


def processor_seconds() -> float:
    """Return the seconds of the processor that this process, its ended children and a browser have taken."""
    return sum(os.times()[:4]) + (browser_seconds() if "playwright.sync_api" in sys.modules else 0.0)


def browser_seconds() -> float:
    """Return the seconds of the processor that the processes below this one have taken that run now."""
    taken = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            taken += times.user + times.system
    return taken


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--costs`."""
    parser.addoption(
        "--costs", type=int, default=10, metavar="N", help="name the N tests that took most of the processor"
    )


def pytest_runtest_logstart() -> None:
    """Begin to count for a test."""
    global _before
    _before = processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Note in each report of a test, which xdist hands to the process that prints, what its phase took."""
    global _before
    report: pytest.TestReport = yield
    now = processor_seconds()
    report.processor_seconds, _before = max(0.0, now - _before), now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the tests that took most."""
    if hasattr(config, "workerinput") or not config.option.costs:
        return
    costs: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            costs[getattr(report, "nodeid", "")] += getattr(report, "processor_seconds", 0.0)
    total = sum(costs.values())
    terminalreporter.write_line(f"{total:.0f} s of the processor in {len(costs)} tests; most of it in:")
    for name, seconds in costs.most_common(config.option.costs):
        terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
