"""What perf calls an event, taken apart: the event, the PMU of a hybrid part, the modifiers.

cycles:u  cpu_core/cycles/u  armv8_pmuv3_0/br_mis_pred/  uncore_imc_3/cas_count_read/  cpu/event=0x29/
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_MODIFIERS = re.compile(r"(?P<name>.+):(?P<letters>[ukhIGHpPSDWeb]+)\Z")
_WITH_PMU = re.compile(r"(?P<pmu>[A-Za-z0-9_.\-]+)/(?P<event>[^/]*)/(?P<letters>[ukhIGHpPSDWeb]*)\Z")
# `cas_count_read [uncore_imc_3]`: perf stat --no-merge.
_BOXED = re.compile(r"(?P<name>\S.*?) \[[^\]]+\]\Z")
_NAMED = re.compile(r"(?:^|,)name=(?P<quote>['\"]?)(?P<name>[^,'\"]+)(?P=quote)")
# A core PMU is one of several kinds of core; other PMUs (memory controllers, caches) are the machine's parts.
_CORE_PMU = re.compile(r"(cpu_(core|atom|lowpower)|armv[89]_\w+|apple_\w+_pmu)\Z")
# What profkit's own event tables put before a name, since `name=` hides the PMU that perf would print.
_CORE_PREFIX = re.compile(r"(?P<pmu>cpu_(core|atom|lowpower))__(?P<name>.+)\Z")
# Their events say nothing without the PMU's name; energy-pkg is clear enough.
_KEEP_PMU = ("cstate_core", "cstate_pkg", "msr")


@dataclass(frozen=True)
class EventName:
    """`name` as formulas know it, `pmu` of a hybrid part, `user` where only user space was counted."""

    name: str
    pmu: str | None = None
    user: bool = False


@lru_cache(maxsize=4096)
def split_name(printed: str) -> EventName:
    """Take apart an event as perf prints it."""
    text = printed.strip()
    if match := _BOXED.match(text):
        text = match["name"]
    letters = ""
    pmu: str | None = None
    if match := _WITH_PMU.match(text):
        letters, event = match["letters"], match["event"]
        if named := _NAMED.search(event):
            event = named["name"]
        if _CORE_PMU.match(match["pmu"]):
            pmu = match["pmu"]
        if "=" in event or not event or match["pmu"] in _KEEP_PMU:
            text = f"{match['pmu']}/{event}/" if pmu is None else event or text
        else:
            text = event
    elif match := _MODIFIERS.match(text):
        text, letters = match["name"], match["letters"]
    if match := _CORE_PREFIX.match(text):
        text, pmu = match["name"], match["pmu"]
    # The kernel's part alone is another quantity and keeps its letter; both rings together are the event.
    where = {letter for letter in letters if letter in "ukhGH"}
    if where and where != {"u"} and not where >= {"u", "k"}:
        text = f"{text}:{''.join(sorted(where))}"
    return EventName(text, pmu, where == {"u"})
