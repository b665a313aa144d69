"""Which events cannot be zero when they were on a counter: a 0 of theirs is a dead counter, not a count."""

from __future__ import annotations

import re

# Whatever ran has executed instructions and branches and touched its first-level cache. cache-references,
# cache-misses and stalled-cycles are here because virtual machines and old AMD parts program them, report
# them as running, and count 0 (seen on a cloud VM and on an AMD E-series). A raw code (r4f2e) is in the list
# because a hypervisor that does not know it counts 0 too. task-clock is not: a task may sleep through a
# window; but the window itself has a length, so duration_time is (it reads 0 beside other events on a Zen 5
# with perf 7.2).
_NEVER_ZERO = re.compile(
    r"(cpu[-_])?cycles|ref-cycles|bus-cycles|instructions|inst_retired(\..*)?|branch(es|-instructions|-misses)|"
    r"br_retired|ex_ret_brn|cache-(references|misses)|stalled-cycles-(frontend|backend)|"
    r"l1-[di]cache-(loads|load-misses|stores|store-misses)|l1d_cache(_refill)?|ls_dispatch\..*|"
    r"duration_time|r[0-9a-f]{1,16}",
    re.IGNORECASE,
)


def cannot_be_zero(name: str) -> bool:
    """Whether a count of 0 at more than 0 % running is a hard zero. `name` without modifiers and PMU."""
    return _NEVER_ZERO.fullmatch(name) is not None
