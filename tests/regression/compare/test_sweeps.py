"""Two sweeps: means over shapes decide, twins are no regression, and a machine that changed is not taken for code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations

import pytest

from profkit.cli.compare import exit_code
from profkit.core.types import Comparison, GridPoint, RunDocument
from profkit.regression.compare import compare
from tests.spoken import spoken
from tests.sweep_twins import changed, made_up, measured, noisy, sweep

OVER = "time.geometric_mean"


@cache
def twin(name: str) -> RunDocument:
    return sweep(measured()[name])


def with_faulty(document: RunDocument, count: float) -> RunDocument:
    """The sweep with so many cases that are not right."""
    told = (replace(r, value=count) if r.metric == "cases.faulty" else r for r in document.readings)
    return replace(document, readings=tuple(told))


def against(by: Callable[[GridPoint, str], float], *, torch: str = "2.11.0", seed: int = 1) -> Comparison:
    """A made-up sweep against a later one in which times are multiplied, with the noise of another sweep."""
    base = made_up()
    later = noisy(base, seed, together=0.003, single=0.006)
    return compare(sweep(base), sweep(changed(later, by), torch=torch))


@pytest.mark.parametrize(
    ("before", "after"), [*permutations(("a1", "b1")), *permutations(("a4", "a4b", "b4"), 2)]
)
def test_measured_sweeps_of_the_same_code_are_neither_worse_nor_better(before: str, after: str) -> None:
    found = compare(twin(before), twin(after))
    assert found.outcome in ("same", "changed", "ambiguous")
    assert all(c.word != "different" for c in found.changes if c.metric == OVER)
    if "a1" not in (before, after):
        assert found.outcome in ("same", "changed")
        assert exit_code(found, strict=False) == 0


def test_an_operation_that_became_slower_is_a_regression_by_name() -> None:
    by = changed(measured()["a4b"], lambda p, name: 1.08 if (p.operation, name) == ("Swish", "CUDA") else 1.0)
    found = compare(twin("a4"), sweep(by))
    assert found.outcome == "regressed"
    assert "CUDA: Swish forward float32, 112 shapes" in spoken(found)
    worse = [c for c in found.changes if c.metric == OVER and c.word == "different"]
    assert [c.scope.name for c in worse] == ["CUDA: Swish forward float32, 112 shapes"]
    assert exit_code(found, strict=False) == 1


def test_cases_that_lost_their_time_leave_it_open() -> None:
    base = made_up()
    gone = next(case for case in base if case[1] == "CUDA")
    less = {case: times for case, times in noisy(base, 1).items() if case != gone}
    found = compare(sweep(base), sweep(less))
    assert found.outcome == "ambiguous"
    assert f"CUDA: {gone[0].name}" in spoken(found)
    assert "run these cases again" in (spoken(found.fix) or "")
    broken_off = compare(sweep(base), sweep(less, complete=False))
    assert "no time in the candidate" not in spoken(broken_off)


def test_equal_code_is_called_different_no_more_often_than_promised() -> None:
    base = made_up(12)
    found = [compare(sweep(noisy(base, 2 * n)), sweep(noisy(base, 2 * n + 1))) for n in range(40)]
    assert sum(c.outcome in ("regressed", "improved") for c in found) <= 2  # 5 %


def test_a_case_that_is_wrong_now_is_a_regression() -> None:
    base = made_up()
    wrong = next(case for case in base if case[1] == "CUDA")
    after = sweep({case: times for case, times in noisy(base, 1).items() if case != wrong})
    found = compare(sweep(base), with_faulty(after, 1.0))
    assert found.outcome == "regressed"
    assert "cases.faulty rose" in spoken(found)
    assert compare(with_faulty(after, 1.0), with_faulty(after, 1.0)).outcome == "same"
    assert compare(with_faulty(after, 1.0), sweep(base)).outcome == "improved"
