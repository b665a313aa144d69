"""valgrind as the doctor tells it: does it simulate, is it repeatable, does a region switch it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profkit.core.types import Check
from profkit.profilers.packages import install_line
from profkit.profilers.region_trial import valgrind_region
from profkit.profilers.valgrind.probe import ValgrindAbility, probe_valgrind


def valgrind_checks() -> Iterator[Check]:
    """Try valgrind, and tell what came of it; where it is absent there is one check that says so."""
    ability = probe_valgrind()
    yield from judge_valgrind(ability)
    if ability.works and ability.path is not None:
        yield valgrind_region(str(ability.path))


def judge_valgrind(ability: ValgrindAbility, root: Path = Path("/")) -> Iterator[Check]:
    """What the probe's answers mean. `root` is read for the distribution."""
    path = None if ability.path is None else str(ability.path)
    if path is None:
        detail = f"{ability.reason}: without hardware counters there are no cache, branch or SIMD figures"
        yield Check("valgrind", "missing", detail, install_line("valgrind", root) if ability.fix else None)
    elif not ability.works:
        detail = ability.reason or "it does not work"
        yield Check("valgrind", "refused", detail, ability.fix, path, ability.version)
    else:
        yield Check("valgrind", "ok", "simulates a program and counts", path=path, version=ability.version)
        if ability.setarch is None:
            yield Check(
                "repeatable addresses",
                "limited",
                "setarch -R is absent or forbidden: simulated conflict misses vary a little between runs",
                "docker run --security-opt seccomp=unconfined (in a container), or install util-linux",
            )
