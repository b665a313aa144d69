"""What Google Benchmark writes: `--benchmark_out=FILE --benchmark_out_format=json`.

Fields as of its JSON reporter 1.4 to 1.9. With repetitions each of them is a sample; where only aggregates were
written (`--benchmark_report_aggregates_only`) their median and mean are what there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from profkit.core.statistics import median
from profkit.regression.history.imports.node import Node
from profkit.regression.history.imports.result import Measured, Result, times

SOURCE = "google-benchmark"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"bytes_per_second": ("bandwidth.declared", "B/s"), "items_per_second": ("items.rate", "items/s")}
# Everything else of a row is a counter of the user's.
_OWN = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "aggregate_name", "aggregate_unit", "label",
    "error_occurred", "error_message", "skipped", "skip_message", "big_o", "rms", "cpu_coefficient",
    "real_coefficient", "allocs_per_iter", "max_bytes_used", "total_allocated_bytes", "net_heap_growth",
}  # fmt: skip


def looks_like(data: Node) -> bool:
    """Told by the context that only it writes beside its benchmarks."""
    context = data.at("context")
    known = ("executable", "num_cpus", "library_build_type", "mhz_per_cpu")
    return isinstance(data.at("benchmarks").data, list) and any(
        context.at(name).data is not None for name in known
    )


def read(data: Node) -> Result:
    """The benchmarks of one program; each is a region by its name with its arguments."""
    context = data.at("context")
    executable = context.at("executable").text()
    left_out: list[str] = []
    caches = [
        f"L{cache.at('level').words()} {int(size) >> 10} KiB"
        for cache in context.at("caches").items()
        if (size := cache.at("size").number()) is not None and cache.at("type").text() != "Instruction"
    ]
    build = context.at("library_build_type").text()
    return Result(
        source=SOURCE,
        workload=PurePosixPath(executable.replace("\\", "/")).name if executable else SOURCE,
        backend="cpu",
        started=context.at("date").text(),
        machine={
            "machine.cores": context.at("num_cpus").words(),
            "machine.caches": ", ".join(caches),
            "google-benchmark.library": build,
        },
        measured=tuple(_measured(data, left_out)),
        facts={
            "cpu scaling": {True: "on", False: "off", None: None}[context.at("cpu_scaling_enabled").truth()],
            "tools": f"{SOURCE} {context.at('library_version').text() or ''}".strip(),
        },
        left_out=tuple(left_out),
    )


def _measured(data: Node, left_out: list[str]) -> Iterator[Measured]:
    rows: dict[str, list[Node]] = {}
    aggregates: dict[str, dict[str, Node]] = {}
    for row in data.at("benchmarks").items():
        name = row.at("run_name").text() or row.at("name").text()
        if name is None:
            left_out.append(f"{row.place} has no name")
        elif row.at("error_occurred").truth() or row.at("skipped").text():
            why = row.at("error_message").text() or row.at("skip_message").text() or "it was skipped"
            left_out.append(f"{name}: {why}")
        elif row.at("run_type").text() == "aggregate":
            aggregates.setdefault(name, {})[row.at("aggregate_name").text() or ""] = row
        else:
            rows.setdefault(name, []).append(row)
    left_out[:] = dict.fromkeys(left_out)
    for name, samples in rows.items():
        yield from _row(name, samples, {})
    for name, told in aggregates.items():
        if name not in rows and any(word in told for word in ("median", "mean")):
            yield from _row(name, [told.get("median", told.get("mean", Node(None)))], told)


def _row(name: str, rows: list[Node], aggregates: dict[str, Node]) -> Iterator[Measured]:
    """One benchmark: its repetitions, or the row of its median."""
    real = _times(rows, "real_time")
    samples = real if not aggregates else ()
    summary: dict[str, float | None] = {
        "time.cpu": median(cpu) if (cpu := _times(rows, "cpu_time")) else None
    }
    if aggregates:
        for word, metric in (("median", "time.median"), ("mean", "time.mean")):
            summary[metric] = (
                next(iter(_times([aggregates[word]], "real_time")), None) if word in aggregates else None
            )
    yield from times(name, [samples], summary)
    counters = {label for row in rows for label, _ in row.fields()} - _OWN
    for label in sorted(counters):
        values = [value for row in rows if (value := row.at(label).number()) is not None]
        if values and not isinstance(rows[0].at(label).data, str):
            metric, unit = _RATES.get(label, (f"counter.{label}", ""))
            yield Measured(name, metric, unit, "higher" if label in _RATES else "none", median(values))


def _times(rows: list[Node], field: str) -> tuple[float, ...]:
    """A time of every row in seconds; rows of an unknown unit have none."""
    found = []
    for row in rows:
        value, scale = row.at(field).number(), _SECONDS.get(row.at("time_unit").text() or "ns")
        if value is not None and scale is not None:
            found.append(value * scale)
    return tuple(found)
