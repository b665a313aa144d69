"""What NVIDIA's nvbench writes: `--json FILE`, with the raw samples beside it after `--jsonbin FILE`.

Fields as of its JSON printer 1.1 (summaries as a list with tags, numbers written as text) and of the one of 2021
(summaries by name). Raw samples lie in `FILE-bin/<n>.bin` as little-endian float32 of seconds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from profkit.core.types import Direction
from profkit.regression.history.imports.node import Node
from profkit.regression.history.imports.result import Measured, Result, times

SOURCE = "nvbench"
MOST_BYTES = 64 << 20  # of one file of samples: sixteen million
_TIMES = {
    "nv/cold/time/gpu/median": "time.median",
    "nv/cold/time/gpu/mean": "time.mean",
    "nv/cold/time/gpu/min": "time.minimum",
    "nv/cold/time/gpu/max": "time.maximum",
    "nv/cold/time/cpu/mean": "time.cpu",
    "nv/batch/time/gpu/mean": "time.batch",
    "Average GPU Time (Cold)": "time.mean",  # the printer of 2021
    "Average CPU Time (Cold)": "time.cpu",
    "Average GPU Time (Batch)": "time.batch",
}
_OTHERS: dict[str, tuple[str, str, Direction]] = {
    "nv/cold/bw/global/bytes_per_second": ("bandwidth.declared", "B/s", "higher"),
    "nv/cold/bw/item_rate": ("items.rate", "items/s", "higher"),
    "nv/cold/sm_clock_rate/mean": ("clock.sm", "Hz", "none"),
}
_SAMPLES = "nv/json/bin:nv/cold/sample_times"


def looks_like(data: Node) -> bool:
    """Told by devices with multiprocessors beside benchmarks with states."""
    states = any(isinstance(one.at("states").data, list) for one in data.at("benchmarks").items())
    return isinstance(data.at("devices").data, list) and states


def read(data: Node, path: Path) -> Result:
    """The states of all benchmarks; each is a region: the benchmark with its axes."""
    argv = next(data.at("meta").at("argv").items(), Node(None)).text()
    version = data.at("meta").at("version").at("nvbench").at("string").text()
    used = {device.words() for one in data.at("benchmarks").items() for device in one.at("devices").items()}
    devices = [device for device in data.at("devices").items() if not used or device.at("id").words() in used]
    left_out: list[str] = []
    several = len(devices) > 1
    return Result(
        source=SOURCE,
        workload=PurePosixPath(argv.replace("\\", "/")).name if argv else SOURCE,
        backend="cuda",
        started=None,
        machine={
            "gpu.name": _all(devices, "name"),
            "gpu.multiprocessors": _all(devices, "number_of_sms"),
            "gpu.count": str(len(devices)) if devices else None,
            "gpu.capability": _all(devices, "sm_version"),
            "gpu.ecc": _all(devices, "ecc_state"),
        },
        measured=tuple(_measured(data, path, left_out, several=several)),
        facts={"tools": f"{SOURCE} {version or ''}".strip()},
        left_out=tuple(left_out),
    )


def _measured(data: Node, path: Path, left_out: list[str], *, several: bool) -> Iterator[Measured]:
    for one in data.at("benchmarks").items():
        for state in one.at("states").items():
            name = _name(one, state, several=several)
            if state.at("is_skipped").truth():
                left_out.append(f"{name}: {state.at('skip_reason').text() or 'it was skipped'}")
                continue
            summaries = dict(_summaries(state))
            told: dict[str, float | None] = {}
            for tag, metric in _TIMES.items():
                if (value := summaries.get(tag, Node(None)).at("value").number()) is not None:
                    told[metric] = value
            samples, why = _samples(summaries.get(_SAMPLES), path)
            if why is not None:
                left_out.append(f"{name}: its samples {why}")
            found = list(times(name, [samples], told))
            if not found:
                left_out.append(f"{name}: no time was measured")
            yield from found
            for tag, (metric, unit, better) in _OTHERS.items():
                value = summaries.get(tag, Node(None)).at("value").number()
                if value is not None:
                    yield Measured(name, metric, unit, better, value)


def _summaries(state: Node) -> Iterator[tuple[str, Node]]:
    """Tag and values of every summary, whichever printer wrote them."""
    for summary in state.at("summaries").items():
        tag = summary.at("tag").text()
        if tag is not None:
            yield tag, _values(summary.at("data"))
    for name, summary in state.at("summaries").fields():
        yield name, _values(summary.at("values"))


def _values(rows: Node) -> Node:
    named = {row.at("name").text(): row.at("value").data for row in rows.items()}
    return Node({name: value for name, value in named.items() if name is not None}, rows.place)


def _name(one: Node, state: Node, *, several: bool) -> str:
    """`copy[Elements=2^20 T=I32]`, with the device where there are several."""
    axes = [
        f"{axis.at('name').text() or '?'}={axis.at('input_string').text() or axis.at('value').words() or ''}"
        for axis in state.at("axis_values").items()
    ]
    device = [f"Device={state.at('device').words()}"] if several else []
    inside = " ".join([*device, *axes])
    name = one.at("name").text() or f"benchmark {one.place}"
    return f"{name}[{inside}]" if inside else name


def _all(devices: list[Node], field: str) -> str | None:
    """What all devices say, each word once."""
    words = [word for device in devices if (word := _word(device.at(field))) is not None]
    return ", ".join(dict.fromkeys(words)) or None


def _word(node: Node) -> str | None:
    return {True: "on", False: "off"}[node.data] if isinstance(node.data, bool) else node.words()


def _samples(summary: Node | None, path: Path) -> tuple[tuple[float, ...], str | None]:
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
    found = struct.unpack(f"<{len(content) // 4}f", content)
    return tuple(sample for sample in found if math.isfinite(sample) and sample >= 0), None
