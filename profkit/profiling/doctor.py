"""Checks what this machine can measure, what prevents a measurement, and which command fixes that.

It tries each instrument with a tiny measurement instead of looking for a file: an installed perf may be
refused, an installed valgrind may crash, and a counter may count nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.backends import CheckGroup, backend_named, backend_names, profiler_group
from profkit.core.errors import ProfkitError, Progress, Silent
from profkit.core.formatting import plural
from profkit.core.types import Check
from profkit.hardware.machine import read_machine
from profkit.profilers.registry import PROFILERS

GIB = 1 << 30


def diagnose(backend: str = "all", progress: Progress | None = None) -> tuple[Check, ...]:
    """Check everything that one backend needs, or `all` of them (`auto` is the same); takes about ten seconds.

    A check that raises becomes a result with that error; it never stops the others. Raises UsageError for an unknown
    backend.
    """
    reporter = progress or Silent()
    checks: list[Check] = []
    for group in groups_for(backend):
        start = time.monotonic()
        reporter.begin(group.title)
        group_checks = _run_group(group)
        checks.extend(group_checks)
        wrong = [f"{check.name}: {check.state}" for check in group_checks if check.state != "ok"]
        reporter.end(f"{', '.join(wrong) or 'good'} ({time.monotonic() - start:.1f} s)")
    return tuple(checks)


def groups_for(backend: str) -> tuple[CheckGroup, ...]:
    """Return the checks for a backend, in order.

    The noise is measured first, since the other checks start processes, which would add to it.
    """
    from profkit.hardware.conditions import noise_checks

    names = sorted(backend_names()) if backend in ("all", "auto") else [backend]
    groups = [group for name in names for group in backend_named(name).check_groups()]
    if len(names) > 1:  # profilers that no backend starts: `record` and `summarize` may use them
        used = {profiler for name in names for profiler in backend_named(name).profilers}
        groups += [profiler_group(name) for name in PROFILERS if name not in used]
    return (
        CheckGroup("noise", noise_checks),
        CheckGroup("machine", machine_checks),
        *{group.title: group for group in groups}.values(),
    )


def blocking_reason(backend: str, checks: Sequence[Check]) -> str | None:
    """Return why this backend can profile nothing at all here; None where it can at least measure time.

    The cpu backend times any workload without a tool, so nothing blocks it; the cuda backend needs a device, and
    what its tools cannot do only limits it.
    """
    name, states = f"{backend} backend", ("missing", "refused")
    return next((check.detail for check in checks if check.name == name and check.state in states), None)


def _run_group(group: CheckGroup) -> tuple[Check, ...]:
    try:
        return tuple(group.run())
    except ProfkitError as error:
        return (Check(group.title, "refused", error.message, error.fix),)
    except Exception as error:
        # Whatever fails here, the other checks of the machine must still be shown.
        return (Check(group.title, "refused", f"this check failed: {type(error).__name__}: {error}"),)


def machine_checks(root: Path = Path("/")) -> Iterator[Check]:
    """Yield checks of the processor and the memory."""
    machine = read_machine(root)
    memory = f"{machine.memory_bytes / GIB:.1f} GiB" if machine.memory_bytes else "memory size unknown"
    parts = (plural(machine.cores, "usable core"), memory, machine.virtual or "bare metal")
    yield Check("processor", "ok", f"{machine.cpu} ({machine.vendor}), {', '.join(parts)}")
