"""The machine, and what makes this run comparable with another one."""

from __future__ import annotations

from profkit.model import Machine, RunDocument
from profkit.reports.html.part import Extras, Part
from profkit.reports.html.templates import filled
from profkit.reports.order import conditions, gpu_lines
from profkit.words import plural, quantity


def part(document: RunDocument, extras: Extras) -> Part | None:
    """What was measured on; None where nothing of it is known."""
    machine = _machine(document.machine) if document.machine is not None else []
    devices = [("Device", line) for line in gpu_lines(document)]
    peaks = _peaks(document)
    told = list(conditions(document).items())
    if not (machine or devices or told):
        return None
    groups = [
        ("Machine", machine),
        ("Devices", devices),
        ("Measured peaks", peaks),
        ("Tools and conditions", told),
    ]
    body = filled("machine.html.j2", groups=[(name, rows) for name, rows in groups if rows])
    return Part("machine", "Machine and comparability", body)


def _machine(machine: Machine) -> list[tuple[str, str]]:
    caches = ", ".join(
        f"L{one.level} {quantity(float(one.size), 'B')}"
        + (f" ({one.ways}-way, {plural(one.shared, 'core')})" if one.ways else "")
        for one in machine.caches
    )
    rows = [
        ("Processor", machine.cpu),
        ("Cores", str(machine.cores)),
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
    rows = [
        ("Bandwidth, one core", quantity(peaks.bandwidth_one, "B/s")),
        (f"Bandwidth, {plural(peaks.threads, 'thread')}", quantity(peaks.bandwidth_all, "B/s")),
        ("Arithmetic (FP32), one core", quantity(peaks.flops_f32_one, "FLOP/s")),
        (f"Arithmetic (FP32), {plural(peaks.threads, 'thread')}", quantity(peaks.flops_f32_all, "FLOP/s")),
        ("Measured by", peaks.method),
    ]
    return [(name, value) for name, value in rows if value != "-"]
