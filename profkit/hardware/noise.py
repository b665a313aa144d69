"""Whether this machine is quiet enough to measure on: each condition judged, with the line that improves it.

Nothing here refuses a measurement. `limited` says that timing will be less certain than it could be;
counters of instructions and a simulation do not suffer from it. The limits stand in `checks.yaml`.
"""

from __future__ import annotations

from pathlib import Path

from profkit.core.formatting import plural
from profkit.core.tables import judge_rows
from profkit.core.types import Check
from profkit.hardware.conditions import MachineConditions, read_conditions
from profkit.hardware.system import superuser_command

GIB = 1 << 30


def noise_checks(root: Path = Path("/"), window: float = 0.5) -> tuple[Check, ...]:
    """Look at the machine for about `window` seconds and judge what is seen."""
    return judge_conditions(read_conditions(root, window))


def judge_conditions(seen: MachineConditions) -> tuple[Check, ...]:
    """One check for each condition the machine tells; what it does not tell has none."""
    threads = max(1, int(seen.quota or 0))
    more = {
        "load_told": _describe_load(seen),
        "load_share": None if seen.load is None else seen.load / seen.cores,
        "stolen_percent": None if seen.stolen is None else 100 * seen.stolen,
        "longer_percent": None if seen.jitter is None else 100 * seen.jitter.spread,
        "fastest_ms": None if seen.jitter is None else 1e3 * seen.jitter.fastest,
        "quota_share": None if seen.quota is None else seen.quota / seen.cores,
        "threads": threads,
        "core_range": "0" if threads == 1 else f"0-{threads - 1}",
        "gib": None if seen.memory is None else seen.memory / GIB,
        "held": "; ".join(seen.slowed or ()),
        "steady": seen.governor == "performance",
        "fix_clock": superuser_command("cpupower frequency-set -g performance"),
        "swap_off": superuser_command("swapoff -a"),
    }
    return tuple(judge_rows(Path(__file__).with_name("checks.yaml"), "noise", seen, more))


def _describe_load(seen: MachineConditions) -> str:
    parts: list[str] = []
    if seen.others is not None:
        parts.append(f"other processes use {100 * seen.others:.0f} % of the cores")
    if seen.pressure is not None:
        parts.append(f"tasks waited for a core in {seen.pressure:.1f} % of the last 10 s")
    if seen.load is not None:
        parts.append(f"load {seen.load:.2f} on {plural(seen.cores, 'core')}")
    return "; ".join(parts)
