"""macOS: Time Profiler and CPU Counters of Instruments, recorded by xctrace.

Built from its exports and help texts, and against a stand-in: it has not run on a Mac yet.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.macos_counting import (
    Counting,
    choose_counting,
    find_counting,
    plan_counting,
    plan_guided,
)
from profkit.backends.cpu.macos_trace import find_trace, plan_trace
from profkit.core.errors import UnreadableReport
from profkit.core.types import PassPlan, PassResult
from profkit.profilers.xctrace.find import XctraceAbility, leftover_note, probe_xctrace


class MacRecorder:
    """xctrace is asked once, when the first plan asks for it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._no_list = False  # the list of events was taken, and nothing was counted

    def tools(self, wanted: tuple[str, ...]) -> dict[str, str | None]:
        """Instruments' version, where it is used."""
        return {"xctrace": self._xctrace.version} if {"trace", "counters"} & set(wanted) else {}

    def trace(self, known: Known) -> PassPlan:
        """Time Profiler."""
        return plan_trace(self._site, self._xctrace, known)

    def counters(self, known: Known) -> list[PassPlan]:
        """CPU Counters with a list of events, and in its guided mode where that left nothing.

        There is no simulation on macOS: valgrind does not run there.
        """
        plans = [plan_counting(self._site, self._xctrace, known, self._counting)]
        if self._no_list:
            plans.append(plan_guided(self._site, self._xctrace, known))
        return plans

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What xctrace left, and what it left lying about."""
        found = self._found(plan)
        note = leftover_note(time.time() - result.seconds)
        return found if note is None else replace(found, notes=(*found.notes, note))

    def _found(self, plan: PassPlan) -> Findings:
        if plan.name == "trace":
            return find_trace(self._site, plan)
        try:
            found = find_counting(self._site, plan, self._counting)
        except UnreadableReport:
            self._no_list = bool(plan.counters)
            raise
        if plan.counters and all(counter.value is None for counter in found.counters):
            self._no_list = True
        return found

    @cached_property
    def _xctrace(self) -> XctraceAbility:
        return probe_xctrace()

    @cached_property
    def _counting(self) -> Counting:
        return choose_counting(self._site.machine, self._xctrace)
