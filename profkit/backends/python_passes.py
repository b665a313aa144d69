"""What Python itself can tell: cProfile and tracemalloc, each in a process of its own."""

from __future__ import annotations

from typing import Literal

from profkit.backends import Findings, Known, Site
from profkit.core.types import Directive, PassPlan, Step
from profkit.profilers.cprofile.read import read_cprofile
from profkit.runtime.passes.command import host_command
from profkit.runtime.passes.read_tracemalloc import read_tracemalloc

# Wall time against a plain run, as measured on the workloads in benchmark/: tracemalloc notes every allocation.
_COST = {"cprofile": 1.2, "tracemalloc": 1.5, "region": 1.1}
_SECONDS = 1.0  # how long a benchmarked function is repeated, where its time is known by then
_LEAST = {"cprofile": 1, "tracemalloc": 32}  # iterations; a leak is a slope, which takes some points
_MOST = {"cprofile": 100_000, "tracemalloc": 2_000}
_LONGEST = 60.0  # but never longer than this for the sake of the least
_FILE = {"cprofile": "cprofile.prof", "tracemalloc": "tracemalloc.json"}


def plan_python(
    site: Site, known: Known, kind: Literal["cprofile", "tracemalloc"], *, late: bool = False
) -> PassPlan:
    """One step under Python's own instrument, or the reason why the workload has no Python to look into.

    `late`: where a region is marked, allocations are traced from there on. Importing torch under tracemalloc takes
    three times as long, and a GPU's workload is not about it.
    """
    out = site.folder / "artifacts" / _FILE[kind]
    late = late and known.marked and kind == "tracemalloc"
    argv, reason = host_command(site.workload.command, "tracemalloc-region" if late else kind, out)
    if argv is None:
        return PassPlan(kind, None, skipped=reason)
    record = str(site.folder / "artifacts" / f"{kind}.region")
    directive = Directive(
        kind, record, iterations=_iterations(kind, known.iteration_seconds), seconds=_SECONDS
    )
    step = Step(kind, tuple(argv), (f"artifacts/{_FILE[kind]}",), directive=directive)
    cost = _COST["region" if late else kind]
    return PassPlan(kind, None, (step,), cost=cost, cost_note="typical; grows with calls and allocations")


def _iterations(kind: Literal["cprofile", "tracemalloc"], seconds: float | None) -> int | None:
    if seconds is None or seconds <= 0:
        return None
    wanted = max(_LEAST[kind], min(_MOST[kind], int(_SECONDS / seconds)))
    return max(1, min(wanted, int(_LONGEST / seconds)))


def find_cprofile(site: Site) -> Findings:
    """The functions by own and cumulative time, and what importing cost."""
    report = read_cprofile(site.folder / "artifacts" / _FILE["cprofile"])
    return Findings(profiles=report.profiles, notes=report.warnings)


def find_tracemalloc(site: Site) -> Findings:
    """Peak and growth of Python's own allocations."""
    return Findings(allocations=read_tracemalloc(site.folder / "artifacts" / _FILE["tracemalloc"]))
