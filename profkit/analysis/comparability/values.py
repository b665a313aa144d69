"""What a run document says of each field, in words that are equal exactly where the thing is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from profkit.analysis.comparability.command import arguments_of, program_of
from profkit.analysis.comparability.metal import metal_values
from profkit.core.types import Gpu, Machine, RunDocument, Timing

GIB = 1 << 30
_VERSIONED = ("perf", "valgrind", "ncu", "nsys", "xctrace")


def values_of(document: RunDocument) -> dict[str, str]:
    """The fields that this document tells, by name."""
    told: dict[str, str | None] = {}
    if document.machine is not None:
        told |= _machine(document.machine)
    else:
        told["machine.caches"] = _simulated(document.notes)
    told |= _gpus(document.gpus, document.facts)
    told |= metal_values(document)
    told |= _workload(document)
    told |= _mode(document)
    told |= _tools(document.tools)
    told |= _software(document)
    told |= _state(document)
    return {name: value for name, value in told.items() if value}


def _machine(machine: Machine) -> dict[str, str | None]:
    model = f", family {machine.family} model {machine.model}" if machine.family is not None else ""
    # kB: the kernel keeps some memory for itself, another amount at each boot, so no more than GiB are the machine's
    return {
        "machine.system": machine.system,
        "machine.architecture": machine.architecture,
        "machine.cpu": f"{machine.cpu}{model}" if machine.cpu else None,
        "machine.cores": str(machine.cores),
        "machine.virtual": machine.virtual or "none",
        "machine.memory": f"{machine.memory_bytes / GIB:.0f} GiB" if machine.memory_bytes else None,
        "machine.caches": ", ".join(
            f"L{cache.level} {cache.size >> 10} KiB {cache.ways}-way" for cache in machine.caches
        ),
        "machine.governor": machine.governor,
        "machine.translated": None
        if machine.system != "Darwin"
        else "yes"
        if "rosetta" in machine.features
        else "no",
        "machine.kernel": machine.release,
    }


def _simulated(notes: tuple[str, ...]) -> str | None:
    """The caches that a callgrind report says it simulated: all that a bare report tells of its machine."""
    levels = ("D1 cache: ", "LL cache: ", "L2 cache: ", "L3 cache: ")
    return ", ".join(note.partition(",")[0] for note in notes if note.startswith(levels)) or None


def _gpus(gpus: tuple[Gpu, ...], facts: Mapping[str, str]) -> dict[str, str | None]:
    driver = next((gpu.driver for gpu in gpus if gpu.driver), None) or facts.get("driver")
    told: dict[str, str | None] = {
        "driver.major": driver.partition(".")[0] if driver else None,
        "driver.version": _two(driver),
        "cuda.version": facts.get("CUDA"),
    }
    if not gpus:
        return told
    return {
        **told,
        "gpu.name": _alike(gpu.name for gpu in gpus),
        "gpu.count": str(len(gpus)),
        "gpu.multiprocessors": _alike(_text(gpu.multiprocessors) for gpu in gpus),
        "gpu.cores": _alike(_text(gpu.cores) for gpu in gpus),
        "gpu.mig": _alike({True: "on", False: "off", None: None}[gpu.mig] for gpu in gpus),
        "gpu.virtual": _alike(gpu.virtual for gpu in gpus),
        "gpu.power_limit": _alike(f"{gpu.power_limit:.0f} W" if gpu.power_limit else None for gpu in gpus),
        "gpu.clock_lock": _alike(
            f"{gpu.clock_lock / 1e6:.0f} MHz" if gpu.clock_lock else None for gpu in gpus
        ),
    }


def _workload(document: RunDocument) -> dict[str, str | None]:
    workload = document.workload
    work = [
        f"{timing.name}: {', '.join(_declared(timing))}" for timing in document.timings if _declared(timing)
    ]
    return {
        "workload.arguments": arguments_of(workload),
        "workload.program": program_of(workload),
        "workload.work": "; ".join(sorted(work)),
        "workload.regions": ", ".join(_regions(document)),
    }


def _regions(document: RunDocument) -> list[str]:
    """What was timed by name; the cases of a sweep, which are thousands, as so many of each group."""
    cases = Counter(timing.group for timing in document.timings if timing.group is not None)
    alone = [timing.name for timing in document.timings if timing.group is None]
    return sorted([*alone, *(f"{group} ({count})" for group, count in cases.items())])


def _declared(timing: Timing) -> list[str]:
    told = (("FLOP", timing.flops), ("bytes", timing.bytes))
    return [f"{value:.6g} {name}" for name, value in told if value is not None]


def _mode(document: RunDocument) -> dict[str, str | None]:
    samples = [process for timing in document.timings for process in timing.processes]
    facts, trace = document.facts, document.trace
    return {
        "mode.backend": document.backend,
        "mode.format": None
        if document.passes or document.timings
        else ", ".join(sorted(_measured(document))),
        "mode.state": document.state,
        "mode.cache": _alike(process.cache for process in samples),
        "mode.clock": _alike(process.clock for process in samples),
        "mode.timed": _alike(timing.kind for timing in document.timings),
        "mode.marked": None
        if trace is None or trace.tool == "ncu"
        else "a region"
        if trace.marked
        else "the program",
        "mode.cache_control": facts.get("cache control"),
        "mode.replay": facts.get("replay"),
        "mode.clock_control": facts.get("clock control") or facts.get("clocks"),
    }


def _measured(document: RunDocument) -> set[str]:
    """The tools that a report without a run comes from."""
    tools = {reading.source.tool for reading in document.readings} | set(document.tools)
    if document.trace is not None:
        tools.add(document.trace.tool)
    return tools - {"profkit"}


def _tools(tools: Mapping[str, str]) -> dict[str, str | None]:
    told: dict[str, str | None] = {
        f"tool.{name}": tools[name].partition(".")[0] for name in _VERSIONED if tools.get(name)
    }
    told["tool.versions"] = ", ".join(f"{name} {tools[name]}" for name in sorted(tools) if tools[name])
    return told


def _software(document: RunDocument) -> dict[str, str | None]:
    packages = document.packages
    return {f"software.{name}": packages.get(name) for name in ("python", "torch", "triton", "numpy")}


def _state(document: RunDocument) -> dict[str, str | None]:
    moments = document.moments
    loads = [moment.load for moment in moments if moment.load is not None]
    pressures = [moment.pressure for moment in moments if moment.pressure is not None]
    heat = [m.temperature for m in moments if m.temperature is not None]
    heat += [d.temperature for m in moments for d in m.devices if d.temperature is not None]
    clocks = [d.clock for m in moments for d in m.devices if d.clock is not None]
    clocks = clocks or [m.clock for m in moments if m.clock is not None]
    reasons = [reason for m in moments for d in m.devices for reason in d.throttle]
    reasons += [reason for m in moments for reason in m.slowed]
    reasons += [r for t in document.timings for p in t.processes for r in p.throttle_reasons]
    return {
        "state.load": f"{max(loads):.2f}" if loads else None,
        "state.pressure": f"{max(pressures):.1f} %" if pressures else None,
        "state.clock": f"{min(clocks) / 1e6:.0f} to {max(clocks) / 1e6:.0f} MHz" if clocks else None,
        "state.temperature": f"{max(heat):.0f} °C" if heat else None,
        "state.throttled": ", ".join(dict.fromkeys(reasons)),
    }


def _alike(values: Iterator[str | None] | tuple[str | None, ...]) -> str | None:
    """The one value of all, or the different ones in order; None where none is told."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _two(version: str | None) -> str | None:
    """The first two parts of a version: one tool says 580.159, another 580.159.04."""
    return ".".join(version.split(".")[:2]) if version else None
