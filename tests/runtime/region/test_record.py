"""The record on disk: what is written is read back, and what is damaged is refused with a sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Fact, SampleSet
from profkit.runtime.passes.read import read_record
from profkit.runtime.region.record import (
    BenchmarkTimes,
    RegionRecord,
    RegionTimes,
    decode_record,
    encode_record,
    save_record,
)

RECORD = RegionRecord(
    pid=7,
    pass_name="timing",
    regions=(RegionTimes("a", 3, 30, (0.1, 0.2), 2),),
    benchmarks=(BenchmarkTimes("b", SampleSet((0.1, 0.2), 4, (0.5,), True, False, 7, 1.5), 1e9, None),),
    precision=0.02,
    notes=(Fact.of("perf-left", said="broken pipe"),),
)


def test_what_is_written_is_read_back() -> None:
    assert decode_record(json.loads(encode_record(RECORD))) == RECORD


def test_a_number_that_is_none_is_never_written(tmp_path: Path) -> None:
    wrong = RegionRecord(1, "timing", (RegionTimes("a", 1, 1, (float("nan"),)),))
    with pytest.raises(ValueError, match="JSON compliant"):
        save_record(wrong, str(tmp_path / "r.json"))
    assert os.listdir(tmp_path) == []


GOOD = json.loads(encode_record(RECORD))


@pytest.mark.parametrize(
    "text",
    [
        "\0\0",
        "[]",
        '{"schema": "profkit.run/6"}',
        json.dumps({**GOOD, "pid": None}),
        json.dumps({**GOOD, "regions": 3}),
        json.dumps({**GOOD, "regions": [{}]}),
        json.dumps({**GOOD, "regions": [{"name": "a", "entries": 1, "iterations": 1, "seconds": [-1]}]}),
        json.dumps(
            {**GOOD, "regions": [{"name": "a", "entries": 1, "iterations": 1, "seconds": [float("nan")]}]}
        ),
        json.dumps({**GOOD, "benchmarks": [{"name": "b", "sample_set": {"seconds": "no"}}]}),
        json.dumps({**GOOD, "spans": [[5, 3]]}),
        json.dumps({**GOOD, "precision": "1e999"}),
        "[" * 100_000,
        encode_record(RECORD)[:-20],
    ],
)
def test_a_damaged_record_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "timing.7.json").write_text(text)
    with pytest.raises(UnreadableReport, match=r"timing\.7\.json: "):
        read_record(tmp_path / "timing.7.json")
