"""Memory over time: a short series that loses no peak, of what a process held and of what torch reserved."""

from __future__ import annotations

import sys

from profkit.analysis.summaries.memory import MAX_LOOKS, memory_series
from profkit.backends.cuda.process_rows import memory_of
from profkit.core import process


def test_a_long_course_is_thinned_and_keeps_its_highest_look() -> None:
    looks = [(n / 100, 1000.0 + n % 7) for n in range(100_000)]
    looks[54_321] = (543.21, 9e9)
    series = memory_series("resident", looks, 9.5e9)
    assert series is not None
    assert len(series.seconds) == len(series.bytes) == MAX_LOOKS
    assert (543.21, 9e9) in zip(series.seconds, series.bytes, strict=True)
    assert list(series.seconds) == sorted(series.seconds)
    assert series.peak == 9.5e9


def test_one_look_is_no_course() -> None:
    assert memory_series("resident", []) is None
    assert memory_series("resident", [(0.1, 5.0)]) is None


def test_a_process_that_grows_is_seen_growing() -> None:
    code = "import time; kept = []\nfor _ in range(12): kept.append(b'x' * 8_000_000); time.sleep(0.1)"
    outcome = process.run([sys.executable, "-c", code], timeout=60)
    sizes = [size for _, size in outcome.memory]
    assert len(sizes) >= 3
    assert sizes[-1] >= sizes[0] + 16e6  # on a busy machine the first look comes late
    assert max(sizes) <= 1.01 * outcome.peak_rss


def test_of_several_processes_the_one_that_reserved_most_is_taken() -> None:
    said = [
        {"held": [[0.0, 10, 20], [0.1, 15, 20]]},
        {"held": [[0.0, 100, 200], [0.1, 150, 300], [0.2, "x", {}], [0.3, -1, 5]]},
        {"held": "nothing"},
        {},
    ]
    allocated, reserved = memory_of(said)
    assert (allocated.kind, allocated.bytes) == ("allocated", (100.0, 150.0))
    assert (reserved.kind, reserved.bytes) == ("reserved", (200.0, 300.0))
    assert list(memory_of([])) == []
