"""What airspeed velocity (asv) writes: `results/<machine>/<commit>-<environment>.json`.

Fields as of its result format 2 (asv 0.5 and later; asv/results.py), with `machine.json` beside it and
`benchmarks.json` one folder above where they are there. A run is ordered by the date of its commit, as asv's own
graphs are: it is often asked to measure old commits today.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Direction
from profkit.regression.history.imports.node import Node, load
from profkit.regression.history.imports.result import Measured, Result, times

SOURCE = "asv"
MOST_PARAMETERS = 100_000  # combinations of one benchmark
# By the type that benchmarks.json tells, or the beginning of a name: metric, unit, and which way is good.
_KINDS: dict[str, tuple[str, str, Direction]] = {
    "time": ("time.median", "s", "lower"),
    "timeraw": ("time.median", "s", "lower"),
    "mem": ("memory.object", "B", "lower"),
    "memory": ("memory.object", "B", "lower"),
    "peakmem": ("memory.rss_peak", "B", "lower"),
    "peakmemory": ("memory.rss_peak", "B", "lower"),
    "track": ("track", "", "none"),  # asv does not say which way is good
}


def looks_like(data: Node) -> bool:
    """Told by the fields that only its result files hold together."""
    return isinstance(data.at("results").data, dict) and data.at("commit_hash").text() is not None


def read(data: Node, path: Path) -> Result:
    """The benchmarks of one commit in one environment; each combination of parameters is a region."""
    if not isinstance(data.at("result_columns").data, list):
        raise UnreadableReport(
            f"{path} is a result of an asv before 0.5, in its old format", "asv update, then add it again"
        )
    machine = _beside(path.with_name("machine.json"))
    told = _beside(path.parent.parent / "benchmarks.json")
    params, left_out = data.at("params"), list[str]()
    started = data.at("date").number()
    return Result(
        source=SOURCE,
        workload=_project(path) or SOURCE,
        backend="cpu",
        started=_iso(started),
        machine={
            "machine.name": machine.at("machine").text() or params.at("machine").text(),
            "machine.cpu": machine.at("cpu").text() or params.at("cpu").text(),
            "machine.cores": machine.at("num_cpu").words() or params.at("num_cpu").words(),
            "machine.architecture": machine.at("arch").text() or params.at("arch").text(),
            "machine.system": (machine.at("os").text() or params.at("os").text() or "").partition(" ")[0],
            "machine.memory": machine.at("ram").words() or params.at("ram").words(),
            "asv.environment": _environment(data),
        },
        measured=tuple(_measured(data, told, left_out)),
        commit=data.at("commit_hash").text(),
        facts={
            "environment": data.at("env_name").text(),
            "started": "the date of the commit, as in asv's graphs",
        },
        left_out=tuple(left_out),
    )


def _measured(data: Node, told: Node, left_out: list[str]) -> Iterator[Measured]:
    columns = [column.text() for column in data.at("result_columns").items()]
    for name, row in data.at("results").fields():
        cells = dict(zip(columns, row.items(), strict=False)) if isinstance(row.data, list) else {}
        result = cells.get("result", Node(None))
        if not isinstance(result.data, list):
            left_out.append(f"{name}: it failed")
            continue
        kind = told.at(name).at("type").text() or name.rpartition(".")[2].partition("_")[0].lower()
        metric, unit, better = _KINDS.get(kind, _KINDS["track"])
        unit = unit or told.at(name).at("unit").text() or ""
        samples = list(cells.get("samples", Node(None)).items())
        labels = _labels(name, cells.get("params", Node(None)), len(result.data))
        for index, value in enumerate(result.items()):
            number = value.number()
            if number is None:
                left_out.append(f"{labels[index]}: it failed or was skipped")
            elif metric == "time.median":
                raw = samples[index].numbers() if index < len(samples) else ()
                yield from times(labels[index], [raw], {metric: number})
            else:
                yield Measured(labels[index], metric, unit, better, number)


def _labels(name: str, params: Node, count: int) -> list[str]:
    """`bench.Sums.time_sum(100, 'a')` for each combination, in the order of the results."""
    lists = [[value.words() or "" for value in axis.items()] for axis in params.items()]
    if not lists:
        return [name] * count
    combinations = math.prod(len(axis) for axis in lists)
    if combinations != count or count > MOST_PARAMETERS:
        raise UnreadableReport(
            f"{name} has {count} results for {combinations} combinations of its parameters"
        )
    return [f"{name}({', '.join(chosen)})" for chosen in itertools.product(*lists)]


def _environment(data: Node) -> str | None:
    """The interpreter's version and the packages that were asked for; no path, which a folder's move would change."""
    python = data.at("python").text()
    wanted = [f"{name} {version.words() or ''}".strip() for name, version in data.at("requirements").fields()]
    named = python if python is not None and "/" not in python and "\\" not in python else None
    return ", ".join([*([f"python {named}"] if named else []), *sorted(wanted)]) or None


def _beside(path: Path) -> Node:
    """Another file of asv's, where it is there and whole."""
    try:
        return load(path) if path.is_file() else Node(None)
    except UnreadableReport:
        return Node(None)


def _project(path: Path) -> str | None:
    """The project's name, from the asv.conf.json above the results where that is plain JSON."""
    for folder in list(path.resolve().parents)[:4]:
        name = _beside(folder / "asv.conf.json").at("project").text()
        if name is not None:
            return name
    return None


def _iso(milliseconds: float | None) -> str | None:
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
