"""What pyperf writes: `-o FILE`. Fields as of its format 1.0 (pyperf/_bench.py); each run is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.statistics import median
from profkit.core.types import Direction
from profkit.regression.history.imports.node import Node
from profkit.regression.history.imports.result import Measured, Result, times

SOURCE = "pyperf"
_UNITS: dict[str, tuple[str, str, Direction]] = {
    "second": ("time.median", "s", "lower"),
    "byte": ("memory.rss_peak", "B", "lower"),
    "integer": ("count", "count", "none"),
}


def looks_like(data: Node) -> bool:
    """Told by benchmarks that are made of runs."""
    first = next(data.at("benchmarks").items(), Node(None))
    return isinstance(first.at("runs").data, list)


def read(data: Node) -> Result:
    """One region per benchmark; the values of each process are a group of samples."""
    common = data.at("metadata")
    left_out: list[str] = []
    benchmarks = list(data.at("benchmarks").items())
    dates = [
        date
        for one in benchmarks
        for run in one.at("runs").items()
        if (date := run.at("metadata").at("date").text())
    ]

    def told(name: str) -> str | None:
        own = (one.at("metadata").at(name).words() for one in benchmarks)
        return common.at(name).words() or next((word for word in own if word), None)

    return Result(
        source=SOURCE,
        workload=SOURCE,
        backend="cpu",
        started=min(dates) if dates else told("date"),
        machine={
            "machine.cpu": told("cpu_model_name"),
            "machine.cores": told("cpu_count"),
            "machine.system": (told("platform") or "").partition("-")[0],
            "machine.governor": told("cpu_governor"),
            "software.python": told("python_version"),
            "machine.affinity": told("cpu_affinity"),
        },
        measured=tuple(_measured(benchmarks, common, left_out)),
        facts={
            "tools": f"{SOURCE} {told('perf_version') or ''}".strip(),
            "started": "local time of that machine, taken as UTC",
        },
        left_out=tuple(left_out),
    )


def _measured(benchmarks: list[Node], common: Node, left_out: list[str]) -> Iterator[Measured]:
    for one in benchmarks:
        name = one.at("metadata").at("name").text() or common.at("name").text()
        unit = one.at("metadata").at("unit").text() or common.at("unit").text() or "second"
        groups = [values for run in one.at("runs").items() if (values := run.at("values").numbers())]
        if name is None or not groups:
            left_out.append(f"{name or one.place}: no value was measured")
            continue
        metric, sign, better = _UNITS.get(unit, _UNITS["integer"])
        if metric == "time.median":
            yield from times(name, groups, {})
        else:
            kept = tuple(tuple(group) for group in groups)
            yield Measured(name, metric, sign, better, median([v for group in kept for v in group]), kept)
