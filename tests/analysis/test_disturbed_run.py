"""Where other programs had the processors, times are not held against what the machine can do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.account.host import host_account
from profkit.core.types import (
    Account,
    CodeSpot,
    Hotspot,
    LineCode,
    Place,
    Profile,
    Reading,
    RunDocument,
    TimeSplit,
    Verdict,
)
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting.views.run_account import account_section
from tests import documents

LINE = Place(function="step", file="/app/gated_mlp.py", line=64)


def judged(queued: float) -> RunDocument:
    """A benchmark of 10 s, for `queued` seconds of which other programs had the processors."""
    matmul = Hotspot(
        "matmul", 0.9, file=LINE.file, line=LINE.line, counters={"flop_fp32": 40e9}, shapes="[512,512]"
    )
    whole = Hotspot("", 1.0, 1.0, file=LINE.file, line=LINE.line)
    before = replace(
        documents.document(),
        time_split=TimeSplit(10.0, startup=1.0, steady=9.0, waiting=0.0, queued=queued, cpu=9.0),
        hot_spots=(CodeSpot(1.0, 9.0, "library", LINE, code=LineCode("x @ w")),),
        readings=(
            documents.reading("flops", 1e8, "FLOP"),
            documents.reading("dram.bytes", 1e5, "B"),
            documents.reading("cache.l1.miss_rate", 3.0),
        ),
        profiles=(Profile("Operations", "s", 1.0, (whole, matmul), kind="line-operators"),),
    )
    judged = judge_document(before, targets_for("cpu"))
    # Places are made of samples, which this run has none of.
    with_places = replace(judged, hot_spots=before.hot_spots)
    return replace(with_places, account=host_account(with_places))


def verdict(document: RunDocument) -> Verdict:
    return next(one for one in document.verdicts if one.target == "roofline")


def share(document: RunDocument) -> Reading:
    return next(one for one in document.readings if one.metric == "roofline.share")


def test_a_roofline_is_judged_only_where_the_program_had_its_processors() -> None:
    alone, beside = judged(0.5), judged(4.0)
    assert verdict(alone).verdict == "fail"
    assert verdict(beside).verdict == "unknown"
    assert share(beside).value == pytest.approx(share(alone).value)
    assert share(beside).doubt is not None
    assert share(beside).doubt.code == "other-programs-ran"


def test_counts_are_judged_however_many_programs_ran_beside() -> None:
    (rate,) = [one for one in judged(4.0).verdicts if one.target == "l1-miss-rate"]
    assert rate.verdict == "pass"


def test_an_account_says_that_others_ran_instead_of_what_is_left_to_win() -> None:
    assert limits(judged(0.5).account) == ["fp32"]
    beside = judged(4.0)
    assert limits(beside.account) == []
    section = account_section(beside)
    assert section is not None
    assert (
        "Other programs used the processors for 40 % of the run, so it is faster on an idle machine."
        in repr(section)
    )
    assert "at the hardware's limits" not in repr(section)


def limits(account: Account | None) -> list[str]:
    assert account is not None
    return [row.limit for row in account.rows if row.limit is not None]
