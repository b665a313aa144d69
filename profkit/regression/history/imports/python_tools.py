"""Results of Python's tools: pytest-benchmark, pyperf, asv.

pytest-benchmark writes `pytest --benchmark-json=FILE`, and the files below .benchmarks/.

Fields as of pytest-benchmark 3 to 5 (`--benchmark-save-data` adds the raw rounds); seconds throughout.

pyperf writes `-o FILE`. Fields as of its format 1.0 (pyperf/_bench.py); each run is a process of its own.

airspeed velocity (asv) writes `results/<machine>/<commit>-<environment>.json`.

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
from profkit.core.statistics import median
from profkit.core.types import Direction
from profkit.regression.history.imports.result import (
    JsonNode,
    MeasuredValue,
    ToolResult,
    load_json,
    time_values,
)

PYTEST_BENCHMARK = "pytest-benchmark"


def is_pytest_benchmark(data: JsonNode) -> bool:
    """Told by the two objects that only it writes side by side."""
    return isinstance(data.at("machine_info").data, dict) and isinstance(data.at("benchmarks").data, list)


def read_pytest_benchmark(data: JsonNode) -> ToolResult:
    """The benchmarks of one session; each is a region called by its test's full name."""
    machine, commit = data.at("machine_info"), data.at("commit_info")
    cpu = machine.at("cpu")
    left_out: list[str] = []
    return ToolResult(
        source=PYTEST_BENCHMARK,
        workload=commit.at("project").text() or PYTEST_BENCHMARK,
        backend="cpu",
        started=data.at("datetime").text(),
        machine={
            "machine.system": machine.at("system").text(),
            "machine.architecture": machine.at("machine").text(),
            "machine.cpu": cpu.at("brand_raw").text()
            or cpu.at("brand").text()
            or machine.at("processor").text(),
            "machine.cores": cpu.at("count").words(),
            "machine.kernel": machine.at("release").text(),
            "software.python": machine.at("python_version").text(),
        },
        measured=tuple(_pytest_values(data, left_out)),
        commit=commit.at("id").text() if commit.at("id").text() != "unversioned" else None,
        dirty=commit.at("dirty").truth(),
        facts={
            "tools": f"{PYTEST_BENCHMARK} {data.at('version').text() or ''}".strip(),
            "branch": commit.at("branch").text(),
        },
        left_out=tuple(left_out),
    )


def _pytest_values(data: JsonNode, left_out: list[str]) -> Iterator[MeasuredValue]:
    for benchmark in data.at("benchmarks").items():
        name = benchmark.at("fullname").text() or benchmark.at("name").text()
        stats = benchmark.at("stats")
        if name is None:
            left_out.append(f"{benchmark.place} has no name")
            continue
        times = {
            "time.median": stats.at("median").number(),
            "time.mean": stats.at("mean").number(),
            "time.minimum": stats.at("min").number(),
            "time.maximum": stats.at("max").number(),
        }
        values = list(time_values(name, [stats.at("data").numbers()], times))
        if not values:
            left_out.append(f"{name}: no time was measured")
        yield from values
        for label, extra in benchmark.at("extra_info").fields():
            value = extra.number()
            if value is not None and not isinstance(extra.data, str):
                yield MeasuredValue(name, f"extra.{label}", "", "none", value)


PYPERF = "pyperf"
_PYPERF_UNITS: dict[str, tuple[str, str, Direction]] = {
    "second": ("time.median", "s", "lower"),
    "byte": ("memory.rss_peak", "B", "lower"),
    "integer": ("count", "count", "none"),
}


def is_pyperf(data: JsonNode) -> bool:
    """Told by benchmarks that are made of runs."""
    first = next(data.at("benchmarks").items(), JsonNode(None))
    return isinstance(first.at("runs").data, list)


def read_pyperf(data: JsonNode) -> ToolResult:
    """One region per benchmark; the values of each process are a group of samples."""
    common = data.at("metadata")
    left_out: list[str] = []
    benchmarks = list(data.at("benchmarks").items())
    dates = [
        date
        for benchmark in benchmarks
        for run in benchmark.at("runs").items()
        if (date := run.at("metadata").at("date").text())
    ]

    def metadata(name: str) -> str | None:
        own = (benchmark.at("metadata").at(name).words() for benchmark in benchmarks)
        return common.at(name).words() or next((word for word in own if word), None)

    return ToolResult(
        source=PYPERF,
        workload=PYPERF,
        backend="cpu",
        started=min(dates) if dates else metadata("date"),
        machine={
            "machine.cpu": metadata("cpu_model_name"),
            "machine.cores": metadata("cpu_count"),
            "machine.system": (metadata("platform") or "").partition("-")[0],
            "machine.governor": metadata("cpu_governor"),
            "software.python": metadata("python_version"),
            "machine.affinity": metadata("cpu_affinity"),
        },
        measured=tuple(_pyperf_values(benchmarks, common, left_out)),
        facts={
            "tools": f"{PYPERF} {metadata('perf_version') or ''}".strip(),
            "started": "local time of that machine, taken as UTC",
        },
        left_out=tuple(left_out),
    )


def _pyperf_values(
    benchmarks: list[JsonNode], common: JsonNode, left_out: list[str]
) -> Iterator[MeasuredValue]:
    for benchmark in benchmarks:
        name = benchmark.at("metadata").at("name").text() or common.at("name").text()
        unit = benchmark.at("metadata").at("unit").text() or common.at("unit").text() or "second"
        groups = [values for run in benchmark.at("runs").items() if (values := run.at("values").numbers())]
        if name is None or not groups:
            left_out.append(f"{name or benchmark.place}: no value was measured")
            continue
        metric, sign, better = _PYPERF_UNITS.get(unit, _PYPERF_UNITS["integer"])
        if metric == "time.median":
            yield from time_values(name, groups, {})
        else:
            samples = tuple(tuple(group) for group in groups)
            yield MeasuredValue(
                name, metric, sign, better, median([v for group in samples for v in group]), samples
            )


ASV = "asv"
MOST_PARAMETERS = 100_000  # combinations of one benchmark
# By the type that benchmarks.json tells, or the beginning of a name: metric, unit, and which way is good.
_ASV_KINDS: dict[str, tuple[str, str, Direction]] = {
    "time": ("time.median", "s", "lower"),
    "timeraw": ("time.median", "s", "lower"),
    "mem": ("memory.object", "B", "lower"),
    "memory": ("memory.object", "B", "lower"),
    "peakmem": ("memory.rss_peak", "B", "lower"),
    "peakmemory": ("memory.rss_peak", "B", "lower"),
    "track": ("track", "", "none"),  # asv does not say which way is good
}


def is_asv(data: JsonNode) -> bool:
    """Told by the fields that only its result files hold together."""
    return isinstance(data.at("results").data, dict) and data.at("commit_hash").text() is not None


def read_asv(data: JsonNode, path: Path) -> ToolResult:
    """The benchmarks of one commit in one environment; each combination of parameters is a region."""
    if not isinstance(data.at("result_columns").data, list):
        raise UnreadableReport(
            f"{path} is a result of an asv before 0.5, in its old format", "asv update, then add it again"
        )
    machine = _load_if_there(path.with_name("machine.json"))
    benchmarks = _load_if_there(path.parent.parent / "benchmarks.json")
    params, left_out = data.at("params"), list[str]()
    started = data.at("date").number()
    return ToolResult(
        source=ASV,
        workload=_asv_project(path) or ASV,
        backend="cpu",
        started=_iso_of_milliseconds(started),
        machine={
            "machine.name": machine.at("machine").text() or params.at("machine").text(),
            "machine.cpu": machine.at("cpu").text() or params.at("cpu").text(),
            "machine.cores": machine.at("num_cpu").words() or params.at("num_cpu").words(),
            "machine.architecture": machine.at("arch").text() or params.at("arch").text(),
            "machine.system": (machine.at("os").text() or params.at("os").text() or "").partition(" ")[0],
            "machine.memory": machine.at("ram").words() or params.at("ram").words(),
            "asv.environment": _asv_environment(data),
        },
        measured=tuple(_asv_values(data, benchmarks, left_out)),
        commit=data.at("commit_hash").text(),
        facts={
            "environment": data.at("env_name").text(),
            "started": "the date of the commit, as in asv's graphs",
        },
        left_out=tuple(left_out),
    )


def _asv_values(data: JsonNode, benchmarks: JsonNode, left_out: list[str]) -> Iterator[MeasuredValue]:
    columns = [column.text() for column in data.at("result_columns").items()]
    for name, row in data.at("results").fields():
        cells = dict(zip(columns, row.items(), strict=False)) if isinstance(row.data, list) else {}
        result = cells.get("result", JsonNode(None))
        if not isinstance(result.data, list):
            left_out.append(f"{name}: it failed")
            continue
        kind = benchmarks.at(name).at("type").text() or name.rpartition(".")[2].partition("_")[0].lower()
        metric, unit, better = _ASV_KINDS.get(kind, _ASV_KINDS["track"])
        unit = unit or benchmarks.at(name).at("unit").text() or ""
        samples = list(cells.get("samples", JsonNode(None)).items())
        labels = _asv_labels(name, cells.get("params", JsonNode(None)), len(result.data))
        for index, value in enumerate(result.items()):
            number = value.number()
            if number is None:
                left_out.append(f"{labels[index]}: it failed or was skipped")
            elif metric == "time.median":
                raw = samples[index].numbers() if index < len(samples) else ()
                yield from time_values(labels[index], [raw], {metric: number})
            else:
                yield MeasuredValue(labels[index], metric, unit, better, number)


def _asv_labels(name: str, params: JsonNode, count: int) -> list[str]:
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


def _asv_environment(data: JsonNode) -> str | None:
    """The interpreter's version and the packages that were asked for; no path, which a folder's move would change."""
    python = data.at("python").text()
    wanted = [f"{name} {version.words() or ''}".strip() for name, version in data.at("requirements").fields()]
    named = python if python is not None and "/" not in python and "\\" not in python else None
    return ", ".join([*([f"python {named}"] if named else []), *sorted(wanted)]) or None


def _load_if_there(path: Path) -> JsonNode:
    """Another file of asv's, where it is there and whole."""
    try:
        return load_json(path) if path.is_file() else JsonNode(None)
    except UnreadableReport:
        return JsonNode(None)


def _asv_project(path: Path) -> str | None:
    """The project's name, from the asv.conf.json above the results where that is plain JSON."""
    for folder in list(path.resolve().parents)[:4]:
        name = _load_if_there(folder / "asv.conf.json").at("project").text()
        if name is not None:
            return name
    return None


def _iso_of_milliseconds(milliseconds: float | None) -> str | None:
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
