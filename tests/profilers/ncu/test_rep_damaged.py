"""A report that is cut off, damaged, hostile or compressed is read as far as it goes, or refused with a sentence."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.ncu.rep import read_ncu_rep
from tests.profilers.ncu import writer as w
from tests.spoken import spoken_lines

NAMES = w.Names()
METRICS: dict[str, w.Value] = {
    "gpu__time_duration.sum": 1500.0,
    "launch__registers_per_thread": w.Uint32(32),
    "sm__pipe.sum": w.Instances((1.0, 2.0), 3.0),
    "launch__func_cache_config": "CachePreferNone",
}
WHOLE = w.report(
    w.block(details=w.session(device={"chip": w.Uint32(384), "multiprocessor_count": w.Uint32(132)})),
    w.block([w.KernelResult("first(float*)", METRICS)], NAMES, sources=[b"\x08\x01"]),
    w.block([w.KernelResult("second(float*)", METRICS), w.TogetherResult(METRICS)], NAMES),
)
FIRST_RESULT_ENDS = WHOLE.index(b"second(float*)")


def read_or_sentence(path: Path, content: bytes) -> Report | UnreadableReport:
    """What reading gives; any other exception fails the test."""
    path.write_bytes(content)
    try:
        return read_ncu_rep(path)
    except UnreadableReport as fault:
        if str(path) not in fault.message:
            raise AssertionError(f"{fault.message} does not say which file") from fault
        return fault


def test_cut_at_any_offset_it_is_read_as_far_as_it_is_whole_or_refused_with_what_is_missing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cut.ncu-rep"
    read = 0
    for size in range(0, len(WHOLE), 3):
        outcome = read_or_sentence(path, WHOLE[:size])
        if isinstance(outcome, UnreadableReport):
            assert any(word in outcome.message for word in ("empty", "cut off", "not a report"))
            continue
        # cut where a block ends, before the first result: as if nothing had been profiled
        if not outcome.counters:
            assert any("no results" in warning for warning in spoken_lines(outcome.warnings))
            continue
        read += 1
        assert {c.scope.name for c in outcome.counters} == {"first(float*)"}
        # A cut where a block ends cannot be told from a whole file.
        assert (
            any("cut off" in warning for warning in spoken_lines(outcome.warnings))
            or outcome.facts["results"] == "1 kernel launch"
        )
    assert read > 30


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"NVR", "not a report of Nsight Compute"),
        (b"NVR\0", "cut off before its first result"),
        (b"SQLite format 3\0" + b"\0" * 100, "not a report of Nsight Compute"),
        (w.report(), "a header and nothing else"),
        (b"NVR\0" + b"\xff\xff\xff\xff" + b"\0" * 40, "cut off before its first result"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(tmp_path: Path, content: bytes, said: str) -> None:
    outcome = read_or_sentence(tmp_path / "foreign.ncu-rep", content)
    assert isinstance(outcome, UnreadableReport)
    assert said in outcome.message


def test_a_newer_layout_is_read_with_a_warning_as_far_as_it_is_known(tmp_path: Path) -> None:
    newer = WHOLE.replace(w.report(), w.report(version=9))
    report = read_or_sentence(tmp_path / "newer.ncu-rep", newer)
    assert isinstance(report, Report)
    assert any("version 9" in warning for warning in spoken_lines(report.warnings))


def _bombs() -> dict[str, bytes]:
    prefix = w.report(w.block(details=w.session()))
    many = w.number(1, 0) + w.number(2, 2**32 - 1) + w.number(5, 8)
    huge = w.number(2, 1) + w.number(5, 2**32 - 1)
    message = w.number(1, 1) + w.varint(13 << 3 | 2) + w.varint(2**63) + b"x"
    long_number = b"\xff" * 20
    return {
        "records": prefix + struct.pack("<I", len(many)) + many + b"\0" * 8,
        "payload": prefix + struct.pack("<I", len(huge)) + huge + b"\0" * 8,
        "metric": prefix + w.block([w.KernelResult("k", {}, more=message)]),
        "number": prefix + w.block([w.KernelResult("k", {}, more=b"\x08" + long_number)]),
        "header": prefix + struct.pack("<I", 2**32 - 1) + b"\x0a" * 64,
        "group": prefix + w.block([w.KernelResult("k", {}, more=w.varint(5 << 3 | 3))]),
    }


@pytest.mark.parametrize("kind", list(_bombs()))
def test_a_length_that_lies_costs_no_memory(tmp_path: Path, kind: str) -> None:
    tracemalloc.start()
    outcome = read_or_sentence(tmp_path / "bomb.ncu-rep", _bombs()[kind])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(outcome, UnreadableReport)
    assert peak < 4e6


def test_damaged_anywhere_it_is_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    by = random.Random(1)
    for _ in range(400):
        content = bytearray(WHOLE)
        for _ in range(by.randrange(1, 12)):
            content[by.randrange(len(WHOLE))] = by.randrange(256)
        read_or_sentence(tmp_path / "damaged.ncu-rep", bytes(content[: by.randrange(2 * len(WHOLE))]))
