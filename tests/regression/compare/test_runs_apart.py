"""Two runs that were recorded apart: what the machine may have made of a time is AMBIGUOUS, with what would decide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import Disturbance, Revision, RunDocument
from profkit.regression.compare import CompareOptions, compare
from profkit.regression.compare.machine import lost_share
from tests.comparison_documents import run, timing, value
from tests.regression.compare.test_decisions import time_of
from tests.spoken import spoken


def guest(by: float = 0.0, seed: int = 1, **changes: object) -> RunDocument:
    """A run on a virtual machine, whose time is `by` off."""
    plain = run(by, seed=seed, **changes)
    assert plain.machine is not None
    return replace(plain, machine=replace(plain.machine, virtual="docker in kvm"))


@pytest.mark.parametrize("by", [-0.45, -0.1, 0.1, 0.5])
def test_a_guest_may_differ_by_a_factor_of_two_from_run_to_run(by: float) -> None:
    found = compare(guest(), guest(by, seed=2))
    assert found.outcome == "ambiguous"
    assert "(docker in kvm) are assumed to differ by up to a factor of 2" in spoken(found)
    assert time_of(found).course == "neither"


def test_on_the_machine_itself_nothing_is_assumed() -> None:
    assert compare(run(), run(0.1, seed=2)).outcome == "regressed"


def disturbed(by: float, seed: int, *disturbances: Disturbance) -> RunDocument:
    return run(by, seed=seed, disturbances=disturbances)


def test_time_that_the_hypervisor_took_makes_a_longer_time_ambiguous_and_no_shorter_one() -> None:
    robbed = Disturbance(1.0, stolen=0.2, others=0.0, waited=0.0)
    found = compare(disturbed(0.0, 1), disturbed(0.1, 2, robbed))
    assert found.outcome == "ambiguous"
    assert "other guests of the hypervisor took 20 % of the time of the candidate" in spoken(found)
    assert compare(disturbed(0.0, 1), disturbed(-0.3, 2, robbed)).outcome == "improved"
    assert compare(disturbed(0.0, 1, robbed), disturbed(-0.1, 2)).outcome == "ambiguous"


def test_a_run_that_waited_for_a_core_while_others_ran_lost_that_time_and_no_more_than_they_had() -> None:
    beside = Disturbance(1.0, stolen=0.0, others=0.9, waited=0.3)
    assert lost_share(disturbed(0.0, 1, beside)) == pytest.approx(0.3)
    assert compare(disturbed(0.0, 1), disturbed(0.2, 2, beside)).outcome == "ambiguous"
    alone = Disturbance(
        1.0, stolen=0.0, others=0.01, waited=7.0
    )  # more threads than cores: they wait for each other
    assert lost_share(disturbed(0.0, 1, alone)) == pytest.approx(0.01)
    assert compare(disturbed(0.0, 1), disturbed(0.2, 2, alone)).outcome == "regressed"


def test_times_of_the_device_s_own_clock_exact_counts_and_what_they_explain_decide_as_before() -> None:
    by_events = [
        replace(guest(), timings=(timing(by, seed=seed, clock="cuda-events"),))
        for by, seed in ((0.0, 1), (0.1, 2))
    ]
    assert compare(*by_events).outcome == "regressed"
    kernels = [
        guest(timings=(), readings=(value("time.gpu", seconds, "s", "nsys"),)) for seconds in (1.0, 1.2)
    ]
    assert compare(*kernels).outcome == "regressed"
    counted = [
        replace(guest(by, seed=seed), readings=(value("instructions", count, "count"),))
        for by, seed, count in ((0.0, 1, 1e6), (0.1, 2, 1.1e6))
    ]
    assert compare(*counted).outcome == "regressed"


def of_command(text: str, commit: str | None = None) -> RunDocument:
    """A commit that ends in `+` has changes beside it."""
    revision = Revision(commit.rstrip("+"), commit.endswith("+")) if commit is not None else None
    plain = run()
    return replace(plain, workload=replace(plain.workload, command=tuple(text.split(" "))), revision=revision)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            ("python old.py 5", None),
            ("python new.py 5", None),
            "profkit compare --a 'python old.py 5' --b 'python new.py 5'",
        ),
        (
            ("python step.py", "a" * 40),
            ("python step.py", "b" * 40),
            "profkit compare --base aaaaaaaaaaaa --head bbbbbbbbbbbb -- python step.py",
        ),
        (
            ("python step.py", "a" * 40 + "+"),
            ("python step.py", "b" * 40),
            "profkit compare --a 'python step.py' --b 'python step.py'",
        ),
    ],
)
def test_the_command_that_decides_runs_both_in_turns(
    before: tuple[str, str | None], after: tuple[str, str | None], line: str
) -> None:
    sides = of_command(*before), of_command(*after)
    slower = replace(sides[1], timings=guest(0.5, seed=2).timings, machine=guest().machine)
    found = compare(replace(sides[0], machine=guest().machine), slower, CompareOptions(force=True))
    assert spoken(found.fix) == line
