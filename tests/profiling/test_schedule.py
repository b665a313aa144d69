"""Which pass of a run comes next."""

from __future__ import annotations

from dataclasses import replace

from profkit.backends import PlanState
from profkit.core.types import Fact, PassPlan, PassResult, Step
from profkit.profiling.schedule import Schedule

UNKNOWN = PlanState(marked=False)


class FakePass:
    """A pass with the given tries, or those that a function makes of what is known."""

    def __init__(self, name, plans):
        self.name, self.plans = name, plans


class FakeBackend:
    """The part of a backend that a schedule asks."""

    name = "cpu"

    def __init__(self, *passes):
        self.passes = passes

    def wanted_passes(self):
        return list(self.passes)

    def plans_of(self, each, state):
        return each.plans(state) if callable(each.plans) else each.plans


def plan(name, tool=None):
    return PassPlan(name, tool, (Step(name, ("true",)),))


def as_they_are(waiting, known):
    return tuple(waiting)


def finished(name, state="finished"):
    return PassResult(name, None, state)


def schedule(*passes, fit=as_they_are):
    return Schedule(FakeBackend(*passes), "standard", fit)


def test_passes_come_in_their_order_and_then_none():
    runs = schedule(FakePass("timing", [plan("timing")]), FakePass("stacks", [plan("stacks")]))
    names = []
    while (following := runs.next_pass(UNKNOWN)) is not None:
        names.append(following.name)
        runs.end(following, finished(following.name))
    assert names == ["timing", "stacks"]
    assert [result.name for result in runs.results] == names
    assert runs.waiting == ()


def test_a_pass_is_planned_by_what_is_known_when_its_turn_comes():
    def plans(known):
        return [plan("counters") if known.marked else plan("counters").skip(Fact("no-pmu"))]

    runs = schedule(FakePass("timing", [plan("timing")]), FakePass("counters", plans))
    runs.end(runs.next_pass(UNKNOWN), finished("timing"))
    assert runs.next_pass(UNKNOWN).skipped == Fact("no-pmu")
    assert runs.next_pass(PlanState(marked=True)).skipped is None


def test_a_second_try_comes_before_the_passes_behind_it():
    def plans(known):
        failed = any(result.state == "failed" for result in known.passes)
        return [plan("trace", "nsys"), plan("trace", "torch")] if failed else [plan("trace", "nsys")]

    runs = schedule(FakePass("trace", plans), FakePass("stacks", [plan("stacks")]))
    runs.end(runs.next_pass(UNKNOWN), finished("trace", "failed"))
    again = runs.next_pass(replace(UNKNOWN, passes=runs.results))
    assert (again.name, again.tool) == ("trace", "torch")
    runs.end(again, finished("trace"))
    assert runs.next_pass(replace(UNKNOWN, passes=runs.results)).name == "stacks"


def test_what_ended_stays_in_the_plan_as_it_was_when_its_turn_came():
    def plans(known):
        return [replace(plan("stacks"), cost=2.0 if known.plain_seconds else 1.0)]

    runs = schedule(FakePass("stacks", plans), FakePass("cprofile", [plan("cprofile")]))
    runs.end(runs.next_pass(UNKNOWN), finished("stacks"))
    runs.next_pass(replace(UNKNOWN, plain_seconds=3.0))
    assert [(planned.name, planned.cost) for planned in runs.plan.passes] == [
        ("stacks", 1.0),
        ("cprofile", None),
    ]


def test_only_what_waits_is_fitted_to_the_time():
    seen = []

    def fit(waiting, known):
        seen.append([planned.name for planned in waiting])
        return tuple(planned.skip(Fact("over-budget"), "--budget 9") for planned in waiting)

    runs = schedule(FakePass("stacks", [plan("stacks")]), FakePass("cprofile", [plan("cprofile")]), fit=fit)
    runs.end(runs.next_pass(UNKNOWN), finished("stacks", "skipped"))
    assert runs.next_pass(UNKNOWN).fix == "--budget 9"
    assert seen == [["stacks", "cprofile"], ["cprofile"]]


def test_a_pass_that_explains_a_failure_stands_where_it_was_carried_out():
    runs = schedule(FakePass("timing", [plan("timing")]), FakePass("stacks", [plan("stacks")]))
    runs.end(runs.next_pass(UNKNOWN), finished("timing", "failed"))
    runs.end(plan("explain"), finished("explain"))
    assert [run.plan.name for run in runs.runs] == ["timing", "explain", "stacks"]
    assert runs.next_pass(UNKNOWN).name == "stacks"


def test_nothing_waits_in_a_schedule_that_was_stopped():
    runs = schedule(FakePass("stacks", [plan("stacks")]), FakePass("cprofile", [plan("cprofile")]))
    runs.next_pass(UNKNOWN)
    runs.stop()
    assert runs.waiting == () == runs.plan.passes


def test_a_pass_that_went_on_after_another_has_one_result_at_its_own_place():
    runs = schedule(FakePass("timing", [plan("timing")]), FakePass("stacks", [plan("stacks")]))
    for name in ("timing", "stacks"):
        runs.end(runs.next_pass(UNKNOWN), finished(name))
    runs.amend(replace(finished("timing"), seconds=3.0))
    assert [(result.name, result.seconds) for result in runs.results] == [("timing", 3.0), ("stacks", 0.0)]
    assert [run.plan.name for run in runs.runs] == ["timing", "stacks"]
