"""The passes of a run in order: which were carried out, which wait for their turn, and which comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from profkit.backends import PlanState
from profkit.backends.passes import BackendRun
from profkit.core.types import Depth, PassPlan, PassResult, Plan

# Takes the waiting passes and what is known; returns these passes, each shortened or skipped to fit into the time left.
FitToTime = Callable[[Sequence[PassPlan], PlanState], tuple[PassPlan, ...]]


@dataclass(frozen=True)
class PassRun:
    """One pass of a run: its plan, which may say why it is skipped, and its result, which is None while it waits."""

    plan: PassPlan
    result: PassResult | None = None


class Schedule:
    """Decide which pass of a run comes next.

    A pass is asked for its steps when its turn comes, by what the passes before it found. Those behind it are asked,
    too, since their cost decides what fits into the time; their steps count only once it is their turn.
    """

    def __init__(self, backend: BackendRun, depth: Depth, fit: FitToTime) -> None:
        self._backend, self._depth, self._fit = backend, depth, fit
        self._done: list[PassRun] = []
        self._waiting: list[PassRun] = []

    @property
    def runs(self) -> tuple[PassRun, ...]:
        """Return all passes in order: those that ended, then those that wait."""
        return (*self._done, *self._waiting)

    @property
    def plan(self) -> Plan:
        """Return the plans of all passes; those of ended passes are as they were when their turn came."""
        return Plan(self._backend.name, self._depth, tuple(run.plan for run in self.runs))

    @property
    def results(self) -> tuple[PassResult, ...]:
        """Return how the passes ended, in order."""
        return tuple(run.result for run in self._done if run.result is not None)

    @property
    def waiting(self) -> tuple[PassPlan, ...]:
        """Return the plans of the passes whose turn has not come."""
        return tuple(run.plan for run in self._waiting)

    def next_pass(self, known: PlanState) -> PassPlan | None:
        """Return the pass whose turn it is, planned by what is known now; None after the last one."""
        # A pass may try again after a failure: what it has carried out is counted by its name, and not by its place.
        tried = Counter(run.plan.name for run in self._done)
        plans = [
            plan
            for each in self._backend.wanted_passes()
            for plan in self._backend.plans_of(each, known)[tried[each.name] :]
        ]
        self._waiting = [PassRun(plan) for plan in self._fit(plans, known)]
        return self._waiting[0].plan if self._waiting else None

    def end(self, plan: PassPlan, result: PassResult) -> None:
        """Add the result of a pass, which need not have been planned: the pass that explains a failure is not."""
        if self._waiting and self._waiting[0].plan.name == plan.name:
            plan = self._waiting.pop(0).plan
        self._done.append(PassRun(plan, result))

    def amend(self, result: PassResult) -> None:
        """Replace the result of the pass of that name: it was continued after others."""
        place = next(place for place, run in enumerate(self._done) if run.plan.name == result.name)
        self._done[place] = replace(self._done[place], result=result)

    def stop(self) -> None:
        """Leave out all passes that wait."""
        self._waiting.clear()
