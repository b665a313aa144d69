"""Result files of Python's tools: pytest-benchmark, asv.

pytest-benchmark: `pytest --benchmark-json=FILE`, and the files below .benchmarks/; fields as of 3 to 5. With
`--benchmark-save-data` it has the raw rounds.

asv: `results/<machine>/<commit>-<environment>.json`; format 2 (asv 0.5 and later), with `machine.json` beside it and
`benchmarks.json` one folder above. A run is ordered by the date of its commit, as asv's own graphs are: it is often
asked to measure old commits today.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.regression.history.imports.result import (
    Json,
    MeasuredValue,
    MetricKind,
    Tool,
    ToolResult,
    number,
    times,
)

# ---------------------------------------------------------------- pytest-benchmark


def _wrote_pytest_benchmark(data: Json) -> bool:
    return isinstance(data.get("machine_info"), dict) and isinstance(data.get("benchmarks"), list)


def _read_pytest_benchmark(data: Json, _path: Path) -> ToolResult:
    """Each benchmark is a region called by its test's full name."""
    machine, commit = data["machine_info"], data.get("commit_info") or {}
    cpu = machine.get("cpu") or {}
    return ToolResult(
        source="pytest-benchmark",
        workload=commit.get("project") or "pytest-benchmark",
        backend="cpu",
        started=data.get("datetime"),
        machine={
            "machine.system": machine.get("system"),
            "machine.architecture": machine.get("machine"),
            "machine.cpu": cpu.get("brand_raw") or cpu.get("brand") or machine.get("processor"),
            "machine.cores": cpu.get("count"),
            "machine.kernel": machine.get("release"),
            "software.python": machine.get("python_version"),
        },
        values=tuple(_pytest_values(data["benchmarks"])),
        commit=commit.get("id") if commit.get("id") != "unversioned" else None,
        dirty=commit.get("dirty"),
        facts={"tools": f"pytest-benchmark {data.get('version')}", "branch": commit.get("branch")},
    )


def _pytest_values(benchmarks: Json) -> Iterator[MeasuredValue | str]:
    for benchmark in benchmarks:
        name, stats = benchmark.get("fullname") or benchmark["name"], benchmark["stats"]
        fields = {"median": "median", "mean": "mean", "minimum": "min", "maximum": "max"}
        summary = {f"time.{metric}": stats.get(field) for metric, field in fields.items()}
        yield from times(name, [stats.get("data")], summary)
        for label, value in (benchmark.get("extra_info") or {}).items():
            if isinstance(value, (int, float)) and (finite := number(value)) is not None:
                yield MeasuredValue(name, f"extra.{label}", "", "none", finite)


# ---------------------------------------------------------------- asv

# By the type that benchmarks.json says, or the beginning of a name.
_ASV_KINDS: dict[str, MetricKind] = {
    "time": ("time.median", "s", "lower"),
    "timeraw": ("time.median", "s", "lower"),
    "mem": ("memory.object", "B", "lower"),
    "memory": ("memory.object", "B", "lower"),
    "peakmem": ("memory.rss_peak", "B", "lower"),
    "peakmemory": ("memory.rss_peak", "B", "lower"),
    "track": ("track", "", "none"),  # asv does not say which way is good
}


def _wrote_asv(data: Json) -> bool:
    return isinstance(data.get("results"), dict) and isinstance(data.get("commit_hash"), str)


def _read_asv(data: Json, path: Path) -> ToolResult:
    """The benchmarks of one commit in one environment; each combination of parameters is a region."""
    if not isinstance(data.get("result_columns"), list):
        raise UnreadableReport(
            f"{path} is a result of an asv before 0.5, in its old format", "asv update, then add it again"
        )
    machine = {**(data.get("params") or {}), **_object_in(path.with_name("machine.json"))}
    python, date = data.get("python"), number(data.get("date"))
    packages = [
        f"{name} {version or ''}".strip() for name, version in (data.get("requirements") or {}).items()
    ]
    # No path of an interpreter, which a folder's move would change.
    named = [f"python {python}"] if python and "/" not in python and "\\" not in python else []
    return ToolResult(
        source="asv",
        workload=_asv_project(path) or "asv",
        backend="cpu",
        started=datetime.fromtimestamp(date / 1000, timezone.utc).isoformat(timespec="seconds")
        if date
        else None,
        machine={
            "machine.name": machine.get("machine"),
            "machine.cpu": machine.get("cpu"),
            "machine.cores": machine.get("num_cpu"),
            "machine.architecture": machine.get("arch"),
            "machine.system": (machine.get("os") or "").partition(" ")[0],
            "machine.memory": machine.get("ram"),
            "asv.environment": ", ".join([*named, *sorted(packages)]),
        },
        values=tuple(_asv_values(data, _object_in(path.parent.parent / "benchmarks.json"))),
        commit=data["commit_hash"],
        facts={"environment": data.get("env_name"), "started": "the date of the commit, as in asv's graphs"},
    )


def _asv_values(data: Json, benchmarks: Json) -> Iterator[MeasuredValue | str]:
    for name, row in data["results"].items():
        cells = dict(zip(data["result_columns"], row or (), strict=False))
        results, samples = cells.get("result"), cells.get("samples") or ()
        if not isinstance(results, list):
            yield f"{name}: it failed"
            continue
        described = benchmarks.get(name) or {}
        kind = described.get("type") or name.rpartition(".")[2].partition("_")[0].lower()
        metric, unit, better = _ASV_KINDS.get(kind, _ASV_KINDS["track"])
        parameters = cells.get("params") or ()
        cases = math.prod(map(len, parameters))
        if cases != len(results):  # also before they are made: a small file can speak of any number
            yield f"{name}: its results are not as many as its parameters have combinations"
            continue
        labels = [f"{name}({', '.join(chosen)})" for chosen in itertools.product(*parameters)]
        for label, value, raw in itertools.zip_longest(
            labels if parameters else [name], results, samples[:cases]
        ):
            measured = number(value)
            if measured is None:
                yield f"{label}: it failed or was skipped"
            elif metric == "time.median":
                yield from times(label, [raw], {metric: measured})
            else:
                yield MeasuredValue(label, metric, unit or described.get("unit") or "", better, measured)


def _object_in(path: Path) -> Json:
    """Another file of asv's, where it is there and whole."""
    try:
        content = json.loads(read_bounded_text(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _asv_project(path: Path) -> str | None:
    """The project's name, from the asv.conf.json above the results where that is plain JSON."""
    names = (
        _object_in(folder / "asv.conf.json").get("project") for folder in list(path.resolve().parents)[:4]
    )
    return next((name for name in names if isinstance(name, str)), None)


PYTHON_TOOLS = (
    Tool("pytest-benchmark", _wrote_pytest_benchmark, _read_pytest_benchmark),
    Tool("asv", _wrote_asv, _read_asv),
)
