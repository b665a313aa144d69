"""The machine, and what makes this run comparable with another one."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.analysis.comparability import all_fields, fingerprint_of
from profkit.core.formatting import plural, quantity
from profkit.core.types import Machine, RunDocument, Tier
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.templates import filled
from profkit.reporting.order import conditions, gpu_lines

LONG = 160  # characters of a fact: longer ones (lists of metrics) open at a click
TIERS: dict[Tier, str] = {
    "must": "Must be alike: where one differs, runs are not compared",
    "should": "Should be alike: a difference is told beside the verdict",
    "observed": "Seen while it ran: whether the samples can be believed",
}


@dataclass(frozen=True)
class Told:
    """One field of what makes runs comparable, as this run has it."""

    title: str
    value: str
    why: str


def part(document: RunDocument, extras: Extras) -> Part | None:
    """What was measured on and how; None where nothing of it is known."""
    print_ = fingerprint_of(document)
    fields = all_fields()
    tiers: list[tuple[str, list[Told], list[str]]] = []
    for tier, title in TIERS.items():
        of = [feature for feature in print_.features if feature.tier == tier and feature.name in fields]
        known = [Told(fields[f.name].title, f.value, fields[f.name].why) for f in of if f.value is not None]
        missing = [fields[f.name] for f in of if f.value is None]
        tiers.append(
            (
                title,
                known,
                [one.title for one in missing if not one.backends or document.backend in one.backends],
            )
        )
    groups = [("Machine", _machine(document)), ("Measured peaks", _peaks(document))]
    told = list(conditions(document).items())
    if not any(known for _, known, _ in tiers) and not told:
        return None
    body = filled(
        "machine.html.j2",
        groups=[(name, rows) for name, rows in groups if rows],
        conditions=[(name, value) for name, value in told if len(value) <= LONG],
        long=[(name, value) for name, value in told if len(value) > LONG],
        tiers=tiers,
        id=print_.id if document.machine is not None or document.gpus else None,
    )
    return Part("machine", "Machine and comparability", body)


def _machine(document: RunDocument) -> list[tuple[str, str]]:
    machine = document.machine
    devices = [("Device", line) for line in gpu_lines(document)]
    return devices if machine is None else [*_host(machine), *devices]


def _host(machine: Machine) -> list[tuple[str, str]]:
    caches = ", ".join(
        f"L{one.level} {quantity(float(one.size), 'B')}"
        + (f" ({one.ways}-way, {plural(one.shared, 'core')})" if one.ways else "")
        for one in machine.caches
    )
    rows = [
        ("Processor", f"{machine.cpu}, {plural(machine.cores, 'core')}"),
        ("Caches of a core", caches),
        ("Memory", quantity(float(machine.memory_bytes), "B")),
        ("System", f"{machine.system} {machine.release}, {machine.architecture}"),
        ("Virtual", machine.virtual or "no"),
        ("Governor", machine.governor or "not told"),
        ("Highest clock", quantity(machine.max_mhz * 1e6, "Hz") if machine.max_mhz else "not told"),
        ("Python", machine.python),
    ]
    return [(name, value) for name, value in rows if value]


def _peaks(document: RunDocument) -> list[tuple[str, str]]:
    peaks = document.peaks
    if peaks is None:
        return []
    every = plural(peaks.threads, "thread")
    rows = [
        ("Bandwidth, 1 core", quantity(peaks.bandwidth_one, "B/s")),
        (f"Bandwidth, {every}", quantity(peaks.bandwidth_all, "B/s")),
        ("FP32, 1 core", quantity(peaks.flops_f32_one, "FLOP/s")),
        (f"FP32, {every}", quantity(peaks.flops_f32_all, "FLOP/s")),
        ("Measured by", peaks.method),
    ]
    return [(name, value) for name, value in rows if value != "-"]
