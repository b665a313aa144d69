"""Result files of tools for compiled programs: Google Benchmark, nvbench.

Google Benchmark: `--benchmark_out=FILE --benchmark_out_format=json`; fields as of its reporter 1.4 to 1.9. With
repetitions each of them is a sample; where only aggregates were written their median and mean are what there is.

nvbench: `--json FILE`; fields as of its printer 1.1: summaries as a list with tags, numbers written as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from profkit.core.statistics import median
from profkit.regression.history.imports.result import (
    Json,
    MeasuredValue,
    MetricKind,
    Tool,
    ToolResult,
    file_name,
    number,
    numbers,
    times,
)

# ---------------------------------------------------------------- Google Benchmark

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"bytes_per_second": ("bandwidth.declared", "B/s"), "items_per_second": ("items.rate", "items/s")}
# Everything else of a row is a counter of the user's.
_GOOGLE_FIELDS = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "aggregate_name", "aggregate_unit", "label",
    "error_occurred", "error_message", "skipped", "skip_message", "big_o", "rms", "cpu_coefficient",
    "real_coefficient", "allocs_per_iter", "max_bytes_used", "total_allocated_bytes", "net_heap_growth",
}  # fmt: skip


def _wrote_google_benchmark(data: Json) -> bool:
    context = data.get("context")
    known = {"executable", "num_cpus", "library_build_type", "mhz_per_cpu"}
    return (
        isinstance(data.get("benchmarks"), list)
        and isinstance(context, dict)
        and bool(known & context.keys())
    )


def _read_google_benchmark(data: Json, _path: Path) -> ToolResult:
    """Each benchmark is a region called by its name with its arguments."""
    context = data["context"]
    caches = [
        f"L{cache['level']} {int(cache['size']) >> 10} KiB"
        for cache in context.get("caches") or ()
        if cache.get("type") != "Instruction"
    ]
    scaling = {True: "on", False: "off"}.get(context.get("cpu_scaling_enabled"))
    return ToolResult(
        source="google-benchmark",
        workload=file_name(context.get("executable")) or "google-benchmark",
        backend="cpu",
        started=context.get("date"),
        machine={
            "machine.cores": context.get("num_cpus"),
            "machine.caches": ", ".join(caches),
            "google-benchmark.library": context.get("library_build_type"),
        },
        values=tuple(_google_values(data["benchmarks"])),
        facts={
            "cpu scaling": scaling,
            "tools": f"google-benchmark {context.get('library_version') or ''}".strip(),
        },
    )


def _google_values(benchmarks: Json) -> Iterator[MeasuredValue | str]:
    repetitions: dict[str, list[Json]] = {}
    aggregates: dict[str, dict[str, Json]] = {}
    for row in benchmarks:
        name = row.get("run_name") or row["name"]
        if row.get("error_occurred") or row.get("skipped"):
            yield f"{name}: {row.get('error_message') or row.get('skip_message') or 'it was skipped'}"
        elif row.get("run_type") == "aggregate":
            aggregates.setdefault(name, {})[row["aggregate_name"]] = row
        else:
            repetitions.setdefault(name, []).append(row)
    for name, rows in repetitions.items():
        wall, cpu = _google_seconds(rows, "real_time"), _google_seconds(rows, "cpu_time")
        yield from times(name, [wall], {"time.cpu": median(cpu) if cpu else None})
        yield from _google_counters(name, rows)
    for name, by_kind in aggregates.items():
        centres = {kind: by_kind[kind] for kind in ("median", "mean") if kind in by_kind}
        if name in repetitions or not centres:
            continue
        first = next(iter(centres.values()))
        real_times = {f"time.{kind}": _google_seconds([row], "real_time")[0] for kind, row in centres.items()}
        cpu = _google_seconds([first], "cpu_time")
        yield from times(name, [], {"time.cpu": cpu[0] if cpu else None, **real_times})
        yield from _google_counters(name, [first])


def _google_seconds(rows: list[Json], field: str) -> list[float]:
    values = [(number(row.get(field)), _SECONDS[row.get("time_unit") or "ns"]) for row in rows]
    return [value * scale for value, scale in values if value is not None]


def _google_counters(name: str, rows: list[Json]) -> Iterator[MeasuredValue]:
    for label in sorted({label for row in rows for label in row} - _GOOGLE_FIELDS):
        values = numbers(row.get(label) for row in rows)
        if values and not isinstance(rows[0].get(label), str):
            metric, unit = _RATES.get(label, (f"counter.{label}", ""))
            yield MeasuredValue(name, metric, unit, "higher" if label in _RATES else "none", median(values))


# ---------------------------------------------------------------- nvbench

_NVBENCH_TIMES = {
    "nv/cold/time/gpu/median": "time.median",
    "nv/cold/time/gpu/mean": "time.mean",
    "nv/cold/time/gpu/min": "time.minimum",
    "nv/cold/time/gpu/max": "time.maximum",
    "nv/cold/time/cpu/mean": "time.cpu",
    "nv/batch/time/gpu/mean": "time.batch",
}
_NVBENCH_OTHERS: dict[str, MetricKind] = {
    "nv/cold/bw/global/bytes_per_second": ("bandwidth.declared", "B/s", "higher"),
    "nv/cold/bw/item_rate": ("items.rate", "items/s", "higher"),
    "nv/cold/sm_clock_rate/mean": ("clock.sm", "Hz", "none"),
}


def _wrote_nvbench(data: Json) -> bool:
    benchmarks = data.get("benchmarks")
    return isinstance(data.get("devices"), list) and any(
        "states" in benchmark for benchmark in benchmarks or ()
    )


def _read_nvbench(data: Json, _path: Path) -> ToolResult:
    """Each state is a region: the benchmark with its axes."""
    meta = data.get("meta") or {}
    command = next(iter(meta.get("argv") or ()), None)
    version = ((meta.get("version") or {}).get("nvbench") or {}).get("string")
    used = {device for benchmark in data["benchmarks"] for device in benchmark.get("devices") or ()}
    devices = [device for device in data["devices"] if not used or device.get("id") in used]
    return ToolResult(
        source="nvbench",
        workload=file_name(command) or "nvbench",
        backend="cuda",
        started=None,
        machine={
            "gpu.name": _words(devices, "name"),
            "gpu.multiprocessors": _words(devices, "number_of_sms"),
            "gpu.count": len(devices),
            "gpu.capability": _words(devices, "sm_version"),
            "gpu.ecc": _words(devices, "ecc_state"),
        },
        values=tuple(_nvbench_values(data["benchmarks"], several=len(devices) > 1)),
        facts={"tools": f"nvbench {version or ''}".strip()},
    )


def _words(devices: Iterable[Json], field: str) -> str:
    """What all devices say, each word once."""
    values = [device[field] for device in devices if device.get(field) is not None]
    words = ["on" if value is True else "off" if value is False else str(value) for value in values]
    return ", ".join(dict.fromkeys(words))


def _nvbench_values(benchmarks: Json, *, several: bool) -> Iterator[MeasuredValue | str]:
    states = [(benchmark, state) for benchmark in benchmarks for state in benchmark["states"]]
    for benchmark, state in states:
        name = _nvbench_name(benchmark, state, several=several)
        if state.get("is_skipped"):
            yield f"{name}: {state.get('skip_reason') or 'it was skipped'}"
            continue
        summaries = {
            summary["tag"]: {row["name"]: row["value"] for row in summary["data"]}
            for summary in state["summaries"]
        }
        summary = {metric: summaries.get(tag, {}).get("value") for tag, metric in _NVBENCH_TIMES.items()}
        yield from times(name, [], summary)
        for tag, (metric, unit, better) in _NVBENCH_OTHERS.items():
            value = number(summaries.get(tag, {}).get("value"))
            if value is not None:
                yield MeasuredValue(name, metric, unit, better, value)


def _nvbench_name(benchmark: Json, state: Json, *, several: bool) -> str:
    """`copy[Elements=2^20 T=I32]`, with the device where there are several."""
    axes = [f"Device={state.get('device')}"] if several else []
    axes += [
        f"{axis['name']}={axis.get('input_string') or axis.get('value') or ''}"
        for axis in state.get("axis_values") or ()
    ]
    return f"{benchmark['name']}[{' '.join(axes)}]" if axes else str(benchmark["name"])


NATIVE_TOOLS = (
    Tool("google-benchmark", _wrote_google_benchmark, _read_google_benchmark),
    Tool("nvbench", _wrote_nvbench, _read_nvbench),
)
