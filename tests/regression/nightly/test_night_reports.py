"""A night told as text, Markdown, JUnit, annotations and a page: the same outcome in each, and nothing obeyed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree

import pytest

from profkit.core.codec import from_plain_data
from profkit.core.types import (
    Change,
    Fact,
    MetricOutcome,
    Night,
    Outcome,
    Sample,
    Scope,
    WorkloadOutcome,
)
from profkit.regression.nightly.workflow import build_night, exit_code, night_to_text
from tests.documents import verdict
from tests.reporting.shown import night_annotations, night_junit, night_markdown, night_page, night_text

HOSTILE = "<script>alert(1)</script>\x1b[31m\"'`|\u202e\udcff\n::error::x 100 %"
REGION = Scope("region", "work")


def metric(outcome: Outcome = "pass", **more: object) -> MetricOutcome:
    told: dict[str, object] = {
        "metric": "time.median",
        "outcome": outcome,
        "code": {"regressed": "nights", "ambiguous": "suspect", "pass": "held"}.get(outcome, outcome),
        "unit": "s",
        "scope": REGION,
        "value": 1.1e-3,
        "expected": 1e-3,
        "band": (0.95e-3, 1.05e-3),
        "detectable": 0.031,
    }
    return MetricOutcome(**{**told, **more})  # type: ignore[arg-type]


def workload(name: str, outcome: Outcome = "pass", **more: object) -> WorkloadOutcome:
    told: dict[str, object] = {"metrics": (metric(outcome),) if outcome != "missing" else ()}
    made = WorkloadOutcome(name, "cpu", outcome, outcome, seconds=3.0)
    return replace(made, **{**told, **more})  # type: ignore[arg-type]


def night(*workloads: WorkloadOutcome, **more: object) -> Night:
    return build_night(
        "n1", "ours", "2026-11-20T02:00:00+00:00", workloads, commit="1" * 40, seconds=500.0, **more
    )  # type: ignore[arg-type]


ALL: tuple[Outcome, ...] = ("pass", "new", "improved", "ambiguous", "invalid", "missing", "regressed")
MIXED = night(
    *(workload(f"w-{outcome}", outcome) for outcome in ALL),
)


def test_what_was_confirmed_shows_its_evidence_and_the_commits_to_look_at() -> None:
    side = Sample(1e-3)
    again = Change(
        "time.median", "s", "lower", side, side, "different", "worse", ratio=1.5, low=1.25, high=1.8
    )
    told = metric("regressed", change=again, commit="b" * 40, good_commit="a" * 40)
    one = night(workload("w", "regressed", metrics=(told,)))
    for text in (night_text(one), night_markdown(one), night_page(one)):
        words = " ".join(unescape(text).split())  # no-break spaces are split at, too
        assert f"git log {'a' * 12}..{'b' * 12}" in words
        assert "profkit history accept w --because WHY" in words


@pytest.mark.parametrize(
    ("workloads", "strict", "code"),
    [
        ([workload("a")], True, 0),
        ([workload("a", "new"), workload("b", "improved")], True, 0),
        ([workload("a", "ambiguous")], False, 0),
        ([workload("a", "ambiguous")], True, 5),
        ([workload("a", "invalid")], False, 5),
        ([workload("a", "missing", ending="done")], False, 5),
        ([workload("a", "missing", ending="absent")], False, 5),
        ([workload("a", "missing", ending="workload-failed")], False, 4),
        ([workload("a", "missing", ending="out-of-time")], False, 4),
        ([workload("a", "missing", ending="died")], False, 4),
        ([workload("a", "missing", ending="machine")], False, 3),
        ([workload("a", "missing", ending="refused")], False, 3),
        ([workload("a", "missing", ending="workload-failed"), workload("b", "regressed")], False, 1),
        ([], False, 5),
    ],
)
def test_the_exit_code_is_that_of_the_gravest(
    workloads: list[WorkloadOutcome], strict: bool, code: int
) -> None:
    assert night(*workloads, strict=strict).exit_code == code
    assert exit_code(night(*workloads, interrupted=True)) == 130


def test_what_vanished_is_told_so_also_where_the_night_was_interrupted() -> None:
    reason = Fact.of("workload vanished", share=0.082)
    gone = workload("gone", "regressed", code="vanished", metrics=(), reason=reason, ending="absent")
    later = workload("later", "missing", ending="absent")
    text = night_text(night(gone, later, interrupted=True))
    assert "it was worse by +8.2 % and is no longer declared" in text
    assert "the night was interrupted before it was measured" in text


def test_annotations_are_escaped_as_githubs_runner_reads_them() -> None:
    one = night(
        workload("a: b, 100 %\r\n", "missing", reason=Fact.message("50 %\nof it"), fix="do: this, now")
    )
    assert night_annotations(one) == (
        '::error title=a%3A b%2C 100 %25  %3A missing::50 %25 "of it"%0Afix: do: this, now\n'
    )


def hostile() -> Night:
    bad = metric(
        "regressed",
        reason=Fact.message(HOSTILE),
        scope=Scope("region", HOSTILE * 50),
        commit=HOSTILE,
        since=HOSTILE,
    )
    one = workload(
        HOSTILE, "regressed", metrics=(bad,), reason=Fact.message(HOSTILE), fix=HOSTILE,
        run=HOSTILE, log=HOSTILE, ending="died", verdicts=(verdict("fail", HOSTILE),),
    )  # fmt: skip
    return replace(night(one, notes=(Fact.message(HOSTILE),)), name=HOSTILE, id="n1")


def test_text_from_outside_is_shown_and_never_obeyed() -> None:
    one = hostile()
    page, markdown = night_page(one), night_markdown(one)
    assert "<script>alert" not in page
    assert "<script>alert" not in re.sub(r"``.*?``", "", markdown)  # in a span of code it is text
    page.encode("utf-8")
    for text in (night_text(one), markdown, page, night_annotations(one)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert night_annotations(one).count("\n") == 1
    ElementTree.fromstring(night_junit(one).split("\n", 1)[1])
    json.loads(night_to_text(one))


def test_the_document_of_a_night_has_all_of_it() -> None:
    document = json.loads(night_to_text(MIXED))
    assert document.pop("schema") == "profkit.night/2"
    assert from_plain_data(Night, document) == MIXED


def test_the_commits_of_several_metrics_are_told_once_and_different_ones_with_their_metrics() -> None:
    at = {"commit": "b" * 40, "good_commit": "a" * 40}
    alike = tuple(metric("regressed", metric=name, **at) for name in ("time.median", "instructions"))
    told = night_text(night(workload("one", "regressed", metrics=alike)))
    assert told.count(f"git log {'a' * 12}..{'b' * 12}") == 1
    other = metric("regressed", metric="branch.count", commit="b" * 40, good_commit="c" * 40)
    text = " ".join(night_text(night(workload("one", "regressed", metrics=(*alike, other)))).split())
    assert "commits since then (time.median of work, instructions of work): git log aaaaaaaaaaaa" in text
    assert "commits since then (branch.count of work): git log cccccccccccc" in text
