"""Where the past ends."""

import pytest

from profkit.core.types import AcceptedChange
from profkit.regression.detection.nights import segments_of
from tests.regression.detection.nights import date, series_of


def shape(machines: str, *accepted: AcceptedChange) -> list[tuple[int, int, str]]:
    series = series_of([1.0] * len(machines), machines)
    return [(e.first, e.last, e.cause) for e in segments_of(series, accepted)]


def known(night: int, metric: str | None = None, workload: str = "gated_mlp") -> AcceptedChange:
    return AcceptedChange(workload, date(night), "checks were added", metric)


@pytest.mark.parametrize(
    ("machines", "segments"),
    [
        ("", []),
        ("aaaa", [(0, 3, "begin")]),
        ("aabb", [(0, 1, "begin"), (2, 3, "machine")]),
        ("aabbcc", [(0, 1, "begin"), (2, 3, "machine"), (4, 5, "machine")]),
        ("abab", [(0, 3, "begin")]),  # a pool: nobody is gone
        ("aaba", [(0, 3, "begin")]),
        ("ababcc", [(0, 3, "begin"), (4, 5, "machine")]),
    ],
)
def test_a_machine_begins_a_segment_where_none_of_those_before_comes_again(
    machines: str, segments: list[tuple[int, int, str]]
) -> None:
    assert shape(machines) == segments


def test_of_other_workloads_and_metrics_nothing_is_accepted() -> None:
    whole = [(0, 3, "begin")]
    assert shape("aaaa", known(2, workload="other")) == whole
    assert shape("aaaa", known(2, metric="ipc")) == whole
    assert shape("aaaa", known(2, metric="time.median")) == [(0, 1, "begin"), (2, 3, "accepted")]


def test_machines_of_invalid_nights_decide_nothing() -> None:
    series = series_of([1.0] * 5, "xaaya", invalid={0: "no", 3: "no"})
    assert [(e.first, e.last) for e in segments_of(series)] == [(0, 4)]
