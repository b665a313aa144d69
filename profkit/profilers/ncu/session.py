"""What a report says of its session: tool, driver, device, command line, and how clocks and caches were kept.

It lies scattered over the block headers, a piece in each, before and behind the results. Host name, addresses,
folders and the environment are in there as well, and are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.types import Gpu
from profkit.profilers.ncu.blocks import LENGTH, VARINT, Buffer, ReportBlock, read_fields, read_text
from profkit.profilers.ncu.launches import Value, finite_number
from profkit.profilers.ncu.results import metric_value
from profkit.profilers.ncu.sets import chip_name

# BlockHeader (ProfilerReport.proto).
_SESSION, _STRINGS, _PROCESS = 3, 4, 6
# ReportSessionDetails.
_CREATED, _DEVICE, _VERSION, _EXECUTABLE, _SETTINGS, _COMMAND = 2, 6, 8, 9, 10, 11
# ProfilerSettings: field number -> the fact it tells.
_SETTING_NAMES = {7: "sections", 8: "clock control", 11: "replay", 15: "tensor core boost"}
_OTHER_OPTIONS, _OTHER_METRICS = 6, 2

_TOOL, _DRIVER, _CUDA = "Nsight Compute Target", "Display Driver Version", "CUDA Version"


@dataclass
class ReportSession:
    """All pieces together, as they are met. What the file does not hold stays empty."""

    versions: dict[str, str] = field(default_factory=dict)
    devices: dict[int, tuple[str, dict[str, Value]]] = field(default_factory=dict)
    command: str | None = None  # of the profiler, whole
    executable: str | None = None
    arguments: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    created: int | None = None  # seconds since 1970
    processes: dict[int, str | None] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """The profiler's version, `2025.3.1`, without its build."""
        text = self.versions.get(_TOOL) or next(
            (v for name, v in self.versions.items() if "Nsight Compute" in name), None
        )
        return ".".join(text.split()[0].split(".")[:3]) if text and text.split() else None

    @property
    def driver(self) -> str | None:
        """The display driver's version, where the session names it."""
        return self.versions.get(_DRIVER) or None

    @property
    def cuda(self) -> str | None:
        """The driver's CUDA version, `13.0`."""
        return self.versions.get(_CUDA) or None


def read_header(data: Buffer, block: ReportBlock, session: ReportSession) -> tuple[str, ...]:
    """The strings of the header of `block`; what it says is added to `session`. Raises MalformedMessage."""
    strings: tuple[str, ...] = ()
    part = block.header
    for number, wire, a, b in read_fields(data, part.offset, part.offset + part.size):
        if wire != LENGTH:
            continue
        if number == _SESSION:
            _read_session(data, a, b, session)
        elif number == _STRINGS:
            strings = tuple(
                read_text(data, c, d) for n, w, c, d in read_fields(data, a, b) if n == 1 and w == LENGTH
            )
        elif number == _PROCESS:
            _process(data, a, b, session)
    return strings


def session_gpus(session: ReportSession, driver: str | None) -> tuple[Gpu, ...]:
    """The devices, by index. Sizes in bytes, bandwidth in bytes per second, clock in Hz."""
    return tuple(
        gpu_of(name, index, attributes, driver)
        for index, (name, attributes) in sorted(session.devices.items())
    )


def gpu_of(name: str, index: int, attributes: Mapping[str, Value], driver: str | None) -> Gpu:
    """A device out of its attributes, named without `device__attribute_`."""

    def number(*names: str) -> int | None:
        values = (finite_number(attributes.get(name)) for name in names)
        return next((int(value) for value in values if value is not None), None)

    major, minor = number("compute_capability_major"), number("compute_capability_minor")
    clock = number("max_gpu_frequency_khz", "clock_rate")
    shown = attributes.get("display_name")
    return Gpu(
        name=name or (shown if isinstance(shown, str) else "") or f"GPU {index}",
        index=index,
        capability=None if major is None else f"{major}.{minor or 0}",
        chip=chip_name(number("chip")),
        multiprocessors=number("multiprocessor_count"),
        memory_bytes=number("total_memory"),
        l2_bytes=number("l2_cache_size"),
        bandwidth=_bandwidth(
            number("max_mem_frequency_khz", "memory_clock_rate"),
            number("global_memory_bus_width", "fb_bus_width"),
        ),
        driver=driver,
        max_clock=None if clock is None else clock * 1e3,
    )


def _bandwidth(khz: int | None, bits: int | None) -> float | None:
    """Peak DRAM bandwidth: two transfers per memory clock over the whole bus (CUDA C++ Best Practices, 8.2.1)."""
    return 2.0 * khz * 1e3 * bits / 8 if khz and bits else None


def _read_session(data: Buffer, at: int, end: int, session: ReportSession) -> None:
    for number, wire, a, b in read_fields(data, at, end):
        if number == _CREATED and wire == VARINT:
            session.created = a if session.created is None else session.created
        elif wire != LENGTH:
            continue
        elif number == _DEVICE:
            _read_device(data, a, b, session)
        elif number == _VERSION:
            texts = _strings(data, a, b)
            session.versions[texts.get(1, "")] = texts.get(2, "")
        elif number == _EXECUTABLE:
            texts = _strings(data, a, b)
            session.executable = texts.get(1) or session.executable
            session.arguments = texts.get(3) or session.arguments
        elif number == _SETTINGS:
            _settings(data, a, b, session)
        elif number == _COMMAND:
            session.command = read_text(data, a, b).strip() or session.command


def _read_device(data: Buffer, at: int, end: int, session: ReportSession) -> None:
    index, name = 0, ""
    attributes: dict[str, Value] = {}
    for number, wire, a, b in read_fields(data, at, end):
        if number == 1 and wire == VARINT:
            index = a
        elif number == 2 and wire == LENGTH:
            name = read_text(data, a, b)
        elif number == 3 and wire == LENGTH:
            key, value = "", None
            for inner, inner_wire, c, d in read_fields(data, a, b):
                if inner == 1 and inner_wire == LENGTH:
                    key = read_text(data, c, d)
                elif inner == 2 and inner_wire == LENGTH:
                    value = metric_value(data, c, d)
            attributes[key.removeprefix("device__attribute_")] = value
    session.devices.setdefault(index, (name, attributes))


def _settings(data: Buffer, at: int, end: int, session: ReportSession) -> None:
    for number, wire, a, b in read_fields(data, at, end):
        if wire != LENGTH:
            continue
        if number in _SETTING_NAMES and b > a:
            session.settings[_SETTING_NAMES[number]] = read_text(data, a, b)
        elif number == _OTHER_OPTIONS:
            metrics = _strings(data, a, b).get(_OTHER_METRICS)
            if metrics:
                session.settings["metrics"] = metrics


def _process(data: Buffer, at: int, end: int, session: ReportSession) -> None:
    id_: int | None = None
    name: str | None = None
    for number, wire, a, b in read_fields(data, at, end):
        if number == 1 and wire == VARINT:
            id_ = a
        elif number == 3 and wire == LENGTH:
            name = read_text(data, a, b).replace("\\", "/").rpartition("/")[2] or None
    if id_ is not None:
        session.processes.setdefault(id_, name)


def _strings(data: Buffer, at: int, end: int) -> dict[int, str]:
    return {
        number: read_text(data, a, b) for number, wire, a, b in read_fields(data, at, end) if wire == LENGTH
    }
