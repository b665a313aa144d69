"""Raw samples in a row: nothing is lost that float32 can hold, and what is left out is left out evenly."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.core.statistics import median
from profkit.regression.history.rows import (
    MOST_GROUPS,
    MOST_SAMPLES,
    pack_samples,
    thin_samples,
    unpack_samples,
)


@given(
    st.lists(
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
        max_size=5,
    )
)
def test_samples_come_back_to_the_precision_of_float32(groups: list[list[float]]) -> None:
    back = unpack_samples(pack_samples(tuple(tuple(group) for group in groups)))
    assert [[pytest.approx(sample, rel=6e-8, abs=0) for sample in group] for group in groups] == [
        list(group) for group in back
    ]


def test_few_samples_are_all_kept() -> None:
    groups = ((1.0,) * 1000, (2.0,) * 1000)
    assert thin_samples(groups) == (groups, None)


def test_many_samples_are_thinned_evenly_in_every_process() -> None:
    rng = random.Random(1)
    groups = tuple(tuple(rng.lognormvariate(0, 0.1) for _ in range(n)) for n in (50_000, 300, 20_000))
    kept, taken = thin_samples(groups)
    assert taken == 70_300
    assert sum(map(len, kept)) <= MOST_SAMPLES
    assert kept[1] == groups[1]
    for before, after in zip(groups, kept, strict=True):
        assert after[0] == before[0]
        assert after[-1] == before[-1]
        assert median(after) == pytest.approx(median(before), rel=0.01)


def test_a_drift_stays_a_drift() -> None:
    (kept,), _ = thin_samples([[float(n) for n in range(100_000)]])
    steps = [b - a for a, b in pairwise(kept)]
    assert max(steps) - min(steps) <= 1


def test_very_many_processes_are_thinned_too() -> None:
    kept, taken = thin_samples([[1.0] * 100] * 1000)
    assert (len(kept), taken) == (MOST_GROUPS, 100_000)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"f",
        b"\x01\x00\xff\xff\xff\xff",
        b"\x01\x00\x02\x00\x00\x00\0\0\0\0",
        b"\x00\x00\x00",
    ],
)
def test_bytes_that_are_no_samples_are_refused(blob: bytes) -> None:
    with pytest.raises(ValueError, match="no packed samples"):
        unpack_samples(blob)


def test_no_samples_take_no_bytes() -> None:
    assert pack_samples(()) is None
    assert unpack_samples(None) == ()
