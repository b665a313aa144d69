"""Merges the findings of a pass into the document of the passes before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from profkit.analysis.summaries.metal import merge_metal_traces
from profkit.analysis.timeline.joined_recordings import with_compiled_lines, with_operations
from profkit.backends import PassFindings
from profkit.core.types import Gpu, Reading, RunDocument


def merge_findings(document: RunDocument, findings: PassFindings, tool: str | None) -> dict[str, object]:
    """Return the fields of the document that change when the findings of a pass with this `tool` are added."""
    return {
        "gpus": _merge_devices(document.gpus, findings.gpus),
        "trace": with_compiled_lines(
            with_operations(document.trace or findings.trace, findings.launched), findings.kernel_lines
        ),
        "metal": merge_metal_traces(document.metal, findings.metal),
        "instructions": (*document.instructions, *findings.instructions),
        "rules": (*document.rules, *findings.rules),
        "facts": _merge_facts(document.facts, findings.facts, tool),
        "counters": (*document.counters, *findings.counters),
        "readings": _merge_readings(document.readings, findings.readings),
        "profiles": (*document.profiles, *findings.profiles),
        "sampled": (*document.sampled, findings.sampled)
        if findings.sampled is not None
        else document.sampled,
        "timeline": document.timeline or findings.timeline,
        "line_counts": (*document.line_counts, *findings.line_counts),
        "allocations": findings.allocations or document.allocations,
        "memory": (*document.memory, *findings.memory),
        "notes": tuple(dict.fromkeys((*document.notes, *findings.notes))),
    }


def _merge_devices(known: tuple[Gpu, ...], reported: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Merge the driver's data of each device with the report's; devices only in the report are added."""
    places = {gpu.index: gpu for gpu in known}
    for gpu in reported:
        before = places.get(gpu.index)
        if before is None:
            places[gpu.index] = gpu
            continue
        missing = {f.name: getattr(gpu, f.name) for f in fields(gpu) if getattr(before, f.name) is None}
        places[gpu.index] = replace(before, **missing)
    return tuple(places[index] for index in sorted(places))


def _merge_facts(known: Mapping[str, str], reported: Mapping[str, str], tool: str | None) -> dict[str, str]:
    """Merge the facts of all passes; where two tools differ, both are kept. The command is the run's own."""
    facts = dict(known)
    for name, value in reported.items():
        before = facts.get(name)
        if name == "command" or (before is not None and before.startswith(value)):
            continue  # one tool says 580.159, the other 580.159.04
        agrees = before is None or value.startswith(before)
        facts[name if agrees else f"{name} ({tool})"] = value
    return facts


def _merge_readings(known: tuple[Reading, ...], new: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Merge all readings; of the same tool, metric and kernel the later one with a value counts."""
    merged: dict[object, Reading] = {}
    for number, reading in enumerate((*known, *new)):
        of_kernel = reading.scope.kind == "kernel"
        place = (reading.metric, reading.scope, reading.source.tool) if of_kernel else number
        if place not in merged or reading.value is not None:
            merged[place] = reading
    return tuple(merged.values())
