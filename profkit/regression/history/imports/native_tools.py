"""Results of tools for compiled programs: Google Benchmark, hyperfine, nvbench.

Google Benchmark writes `--benchmark_out=FILE --benchmark_out_format=json`.

Fields as of its JSON reporter 1.4 to 1.9. With repetitions each of them is a sample; where only aggregates were
written (`--benchmark_report_aggregates_only`) their median and mean are what there is.

hyperfine writes `--export-json FILE`. Fields as of hyperfine 1.6 to 1.20; seconds throughout.

NVIDIA's nvbench writes `--json FILE`, with the raw samples beside it after `--jsonbin FILE`.

Fields as of its JSON printer 1.1: summaries as a list with tags, numbers written as text. Raw samples are in
`FILE-bin/<n>.bin` as little-endian float32 of seconds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from profkit.core.statistics import median
from profkit.core.types import Direction
from profkit.regression.history.imports.result import JsonNode, MeasuredValue, ToolResult, time_values

GOOGLE_BENCHMARK = "google-benchmark"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"bytes_per_second": ("bandwidth.declared", "B/s"), "items_per_second": ("items.rate", "items/s")}
# Everything else of a row is a counter of the user's.
_GOOGLE_FIELDS = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "aggregate_name", "aggregate_unit", "label",
    "error_occurred", "error_message", "skipped", "skip_message", "big_o", "rms", "cpu_coefficient",
    "real_coefficient", "allocs_per_iter", "max_bytes_used", "total_allocated_bytes", "net_heap_growth",
}  # fmt: skip


def is_google_benchmark(data: JsonNode) -> bool:
    """Told by the context that only it writes beside its benchmarks."""
    context = data.at("context")
    known = ("executable", "num_cpus", "library_build_type", "mhz_per_cpu")
    return isinstance(data.at("benchmarks").data, list) and any(
        context.at(name).data is not None for name in known
    )


def read_google_benchmark(data: JsonNode) -> ToolResult:
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
    return ToolResult(
        source=GOOGLE_BENCHMARK,
        workload=PurePosixPath(executable.replace("\\", "/")).name if executable else GOOGLE_BENCHMARK,
        backend="cpu",
        started=context.at("date").text(),
        machine={
            "machine.cores": context.at("num_cpus").words(),
            "machine.caches": ", ".join(caches),
            "google-benchmark.library": build,
        },
        measured=tuple(_google_values(data, left_out)),
        facts={
            "cpu scaling": {True: "on", False: "off", None: None}[context.at("cpu_scaling_enabled").truth()],
            "tools": f"{GOOGLE_BENCHMARK} {context.at('library_version').text() or ''}".strip(),
        },
        left_out=tuple(left_out),
    )


def _google_values(data: JsonNode, left_out: list[str]) -> Iterator[MeasuredValue]:
    rows: dict[str, list[JsonNode]] = {}
    aggregates: dict[str, dict[str, JsonNode]] = {}
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
        yield from _google_benchmark_values(name, samples, {})
    for name, rows_of_name in aggregates.items():
        if name not in rows and any(word in rows_of_name for word in ("median", "mean")):
            yield from _google_benchmark_values(
                name, [rows_of_name.get("median", rows_of_name.get("mean", JsonNode(None)))], rows_of_name
            )


def _google_benchmark_values(
    name: str, rows: list[JsonNode], aggregates: dict[str, JsonNode]
) -> Iterator[MeasuredValue]:
    """One benchmark: its repetitions, or the row of its median."""
    real = _seconds_of_rows(rows, "real_time")
    samples = real if not aggregates else ()
    summary: dict[str, float | None] = {
        "time.cpu": median(cpu) if (cpu := _seconds_of_rows(rows, "cpu_time")) else None
    }
    if aggregates:
        for word, metric in (("median", "time.median"), ("mean", "time.mean")):
            summary[metric] = (
                next(iter(_seconds_of_rows([aggregates[word]], "real_time")), None)
                if word in aggregates
                else None
            )
    yield from time_values(name, [samples], summary)
    counters = {label for row in rows for label, _ in row.fields()} - _GOOGLE_FIELDS
    for label in sorted(counters):
        values = [value for row in rows if (value := row.at(label).number()) is not None]
        if values and not isinstance(rows[0].at(label).data, str):
            metric, unit = _RATES.get(label, (f"counter.{label}", ""))
            yield MeasuredValue(name, metric, unit, "higher" if label in _RATES else "none", median(values))


def _seconds_of_rows(rows: list[JsonNode], field: str) -> tuple[float, ...]:
    """A time of every row in seconds; rows of an unknown unit have none."""
    times = []
    for row in rows:
        value, scale = row.at(field).number(), _SECONDS.get(row.at("time_unit").text() or "ns")
        if value is not None and scale is not None:
            times.append(value * scale)
    return tuple(times)


HYPERFINE = "hyperfine"


def is_hyperfine(data: JsonNode) -> bool:
    """Told by results that each have a command and a mean."""
    first = next(data.at("results").items(), JsonNode(None))
    return first.at("command").text() is not None and first.at("mean").data is not None


def read_hyperfine(data: JsonNode) -> ToolResult:
    """One region per command. It does not say when, on what machine, or of which commit."""
    left_out: list[str] = []
    return ToolResult(
        HYPERFINE,
        HYPERFINE,
        "cpu",
        None,
        {},
        tuple(_hyperfine_values(data, left_out)),
        left_out=tuple(left_out),
    )


def _hyperfine_values(data: JsonNode, left_out: list[str]) -> Iterator[MeasuredValue]:
    for result in data.at("results").items():
        name = result.at("command").text()
        if name is None:
            left_out.append(f"{result.place} has no command")
            continue
        codes = sorted({code for code in result.at("exit_codes").numbers() if code != 0})
        failed = f"the command ended with {', '.join(f'{code:.0f}' for code in codes)}" if codes else None
        times = {
            "time.median": result.at("median").number(),
            "time.mean": result.at("mean").number(),
            "time.minimum": result.at("min").number(),
            "time.maximum": result.at("max").number(),
            "time.user": result.at("user").number(),
            "time.system": result.at("system").number(),
        }
        values = list(
            time_values(_with_parameters(name, result), [result.at("times").numbers()], times, failed)
        )
        if not values:
            left_out.append(f"{name}: no time was measured")
        yield from values


def _with_parameters(name: str, result: JsonNode) -> str:
    """The command; parameters are in it already, unless it was named."""
    parameters = [
        f"{key}={value.words()}"
        for key, value in result.at("parameters").fields()
        if value.words() not in (None, "")
    ]
    return (
        f"{name} ({', '.join(parameters)})"
        if parameters and not all(str(t).partition("=")[2] in name for t in parameters)
        else name
    )


NVBENCH = "nvbench"
MOST_BYTES = 64 << 20  # of one file of samples: sixteen million
_NVBENCH_TIMES = {
    "nv/cold/time/gpu/median": "time.median",
    "nv/cold/time/gpu/mean": "time.mean",
    "nv/cold/time/gpu/min": "time.minimum",
    "nv/cold/time/gpu/max": "time.maximum",
    "nv/cold/time/cpu/mean": "time.cpu",
    "nv/batch/time/gpu/mean": "time.batch",
}
_NVBENCH_OTHERS: dict[str, tuple[str, str, Direction]] = {
    "nv/cold/bw/global/bytes_per_second": ("bandwidth.declared", "B/s", "higher"),
    "nv/cold/bw/item_rate": ("items.rate", "items/s", "higher"),
    "nv/cold/sm_clock_rate/mean": ("clock.sm", "Hz", "none"),
}
_NVBENCH_SAMPLES = "nv/json/bin:nv/cold/sample_times"


def is_nvbench(data: JsonNode) -> bool:
    """Told by devices with multiprocessors beside benchmarks with states."""
    states = any(isinstance(benchmark.at("states").data, list) for benchmark in data.at("benchmarks").items())
    return isinstance(data.at("devices").data, list) and states


def read_nvbench(data: JsonNode, path: Path) -> ToolResult:
    """The states of all benchmarks; each is a region: the benchmark with its axes."""
    argv = next(data.at("meta").at("argv").items(), JsonNode(None)).text()
    version = data.at("meta").at("version").at("nvbench").at("string").text()
    used = {
        device.words()
        for benchmark in data.at("benchmarks").items()
        for device in benchmark.at("devices").items()
    }
    devices = [device for device in data.at("devices").items() if not used or device.at("id").words() in used]
    left_out: list[str] = []
    several = len(devices) > 1
    return ToolResult(
        source=NVBENCH,
        workload=PurePosixPath(argv.replace("\\", "/")).name if argv else NVBENCH,
        backend="cuda",
        started=None,
        machine={
            "gpu.name": _joined_words(devices, "name"),
            "gpu.multiprocessors": _joined_words(devices, "number_of_sms"),
            "gpu.count": str(len(devices)) if devices else None,
            "gpu.capability": _joined_words(devices, "sm_version"),
            "gpu.ecc": _joined_words(devices, "ecc_state"),
        },
        measured=tuple(_nvbench_values(data, path, left_out, several=several)),
        facts={"tools": f"{NVBENCH} {version or ''}".strip()},
        left_out=tuple(left_out),
    )


def _nvbench_values(
    data: JsonNode, path: Path, left_out: list[str], *, several: bool
) -> Iterator[MeasuredValue]:
    for benchmark in data.at("benchmarks").items():
        for state in benchmark.at("states").items():
            name = _nvbench_name(benchmark, state, several=several)
            if state.at("is_skipped").truth():
                left_out.append(f"{name}: {state.at('skip_reason').text() or 'it was skipped'}")
                continue
            summaries = dict(_nvbench_summaries(state))
            times: dict[str, float | None] = {}
            for tag, metric in _NVBENCH_TIMES.items():
                if (value := summaries.get(tag, JsonNode(None)).at("value").number()) is not None:
                    times[metric] = value
            samples, why = _nvbench_samples(summaries.get(_NVBENCH_SAMPLES), path)
            if why is not None:
                left_out.append(f"{name}: its samples {why}")
            values = list(time_values(name, [samples], times))
            if not values:
                left_out.append(f"{name}: no time was measured")
            yield from values
            for tag, (metric, unit, better) in _NVBENCH_OTHERS.items():
                value = summaries.get(tag, JsonNode(None)).at("value").number()
                if value is not None:
                    yield MeasuredValue(name, metric, unit, better, value)


def _nvbench_summaries(state: JsonNode) -> Iterator[tuple[str, JsonNode]]:
    """Tag and values of every summary."""
    for summary in state.at("summaries").items():
        tag = summary.at("tag").text()
        if tag is not None:
            yield tag, _named_values(summary.at("data"))


def _named_values(rows: JsonNode) -> JsonNode:
    named = {row.at("name").text(): row.at("value").data for row in rows.items()}
    return JsonNode({name: value for name, value in named.items() if name is not None}, rows.place)


def _nvbench_name(benchmark: JsonNode, state: JsonNode, *, several: bool) -> str:
    """`copy[Elements=2^20 T=I32]`, with the device where there are several."""
    axes = [
        f"{axis.at('name').text() or '?'}={axis.at('input_string').text() or axis.at('value').words() or ''}"
        for axis in state.at("axis_values").items()
    ]
    device = [f"Device={state.at('device').words()}"] if several else []
    inside = " ".join([*device, *axes])
    name = benchmark.at("name").text() or f"benchmark {benchmark.place}"
    return f"{name}[{inside}]" if inside else name


def _joined_words(devices: list[JsonNode], field: str) -> str | None:
    """What all devices say, each word once."""
    words = [word for device in devices if (word := _on_off_or_words(device.at(field))) is not None]
    return ", ".join(dict.fromkeys(words)) or None


def _on_off_or_words(node: JsonNode) -> str | None:
    return {True: "on", False: "off"}[node.data] if isinstance(node.data, bool) else node.words()


def _nvbench_samples(summary: JsonNode | None, path: Path) -> tuple[tuple[float, ...], str | None]:
    """The raw samples of one state, and why there are none. Only files beside the JSON are opened.

    nvbench writes the path as it was given on its command line; so the last two parts of it are looked for here.
    """
    named = summary.at("filename").text() if summary is not None else None
    if summary is None or named is None:
        return (), None
    parts = [part for part in PurePosixPath(named.replace("\\", "/")).parts if part not in ("..", ".", "/")][
        -2:
    ]
    file = path.parent.joinpath(*parts)
    try:
        if not parts or not file.is_file():
            return (), "are not beside the file"
        if file.stat().st_size > MOST_BYTES:
            return (), f"take more than {MOST_BYTES >> 20} MiB"
        content = file.read_bytes()
    except (OSError, ValueError) as error:
        return (), f"cannot be read: {error}"
    count = summary.at("size").number()
    if count is None or len(content) != 4 * count:
        return (), f"are not whole: {len(content)} bytes for {count or 0:.0f} samples"
    samples = struct.unpack(f"<{len(content) // 4}f", content)
    return tuple(sample for sample in samples if math.isfinite(sample) and sample >= 0), None
