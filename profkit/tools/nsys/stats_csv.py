"""Reads what `nsys stats --format csv` printed: kernels, copies, ranges and calls, summed up or one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from profkit.errors import UnreadableReport
from profkit.model import ApiCall, GpuRange, GpuTrace, Kernel, KernelTime, Report, Transfer
from profkit.tools.nsys.faults import explain
from profkit.tools.nsys.stats_cells import COPY, copy_kind, seconds, size_of, triple, whole
from profkit.tools.nsys.stats_text import SIGN, Section, Text, parse


def looks_like(head: bytes) -> bool:
    """True where a table of nsys stats begins, or a line of nsys stats itself stands."""
    return SIGN.search(head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")) is not None


def read_stats_csv(path: Path) -> Report:
    """The trace that the tables tell. Raises UnreadableReport where all were skipped, as nsys says with exit code 0."""
    from profkit.tools.nsys.stats_trace import Launches

    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            launches = Launches()
            text = parse(file, launches.take)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # an embedded null byte in the name
        raise UnreadableReport(f"{str(path)!r} is no file name: {error}") from error
    if not launches.collected.devices and not any(section.rows for section in text.sections):
        raise _empty(path, text)
    trace, warnings = launches.trace() if launches.collected.devices else (GpuTrace("nsys", ()), [])
    trace, more = _with_sums(trace, text.sections)
    warnings += more
    text.odd += launches.odd
    warnings += [f"nsys stats: {said}" for said in dict.fromkeys(text.skipped)]
    if text.odd:
        warnings.append(f"{text.odd} rows were not understood and left out")
    reports = sorted({section.report for section in text.sections if section.report is not None})
    facts = {"reports": ", ".join(reports)} if reports else {}
    return Report("nsys", "nsys-stats-csv", facts=facts, trace=trace, warnings=tuple(warnings))


def _empty(path: Path, text: Text) -> UnreadableReport:
    said = f"SKIPPED: {text.skipped[0]}" if text.skipped else ""
    fault = explain(said, 0) if said else None
    if fault is not None:
        return UnreadableReport(f"{path} holds no table: {fault.reason}", fault.fix)
    return UnreadableReport(
        f"{path} holds no table of nsys stats with a row in it{': ' + said if said else ''}"
    )


def _with_sums(trace: GpuTrace, sections: Iterable[Section]) -> tuple[GpuTrace, list[str]]:
    by_kind: dict[str, list[Section]] = {}
    for section in sections:
        kind = "calls" if section.kind == "times" and _is_calls(section) else section.kind
        kind = "copies" if kind == "times" and _is_copies(section) else kind
        by_kind.setdefault(kind, []).append(section)
    warnings: list[str] = []
    kernels = _kernels(by_kind.get("kernels-by-shape") or by_kind.get("times") or [])
    if not trace.kernels and kernels:
        trace = replace(trace, kernels=kernels, launches=sum(kernel.launches for kernel in kernels))
        if "kernels-by-shape" not in by_kind:
            warnings.append(
                "the table does not tell grids and blocks: nsys stats --report cuda_gpu_kern_gb_sum does"
            )
    trace = _with_ranges(trace, by_kind.get("nvtx-kernels", []), by_kind.get("nvtx-projection", []))
    calls = _calls(by_kind.get("calls", []))
    return replace(
        trace,
        transfers=trace.transfers or _transfers(by_kind.get("copies", []), by_kind.get("sizes", [])),
        api=calls,
        launch_call=_launch_call(by_kind.get("calls", [])),
    ), warnings


def _is_calls(section: Section) -> bool:
    """CUDA's API, and not kernels: both have the same columns."""
    if section.report is not None:
        return "api" in section.report
    return bool(section.rows) and all(
        re.match(r"cu[A-Z]|cuda[A-Z]", row["name"]) for row in section.rows[:50]
    )


def _is_copies(section: Section) -> bool:
    return bool(section.rows) and all(COPY.match(row["name"]) for row in section.rows)


def _kernels(sections: Iterable[Section]) -> tuple[KernelTime, ...]:
    found = []
    for section in sections:
        for row in section.rows:
            total, launches = seconds(section, row, "total time"), whole(row.get("count"))
            if total is None or launches is None or COPY.match(row["name"]):
                continue
            kernel = Kernel(row["name"], triple(row.get("gridxyz")), triple(row.get("blockxyz")))
            found.append(
                KernelTime(
                    kernel,
                    launches,
                    total,
                    seconds(section, row, "med"),
                    seconds(section, row, "min"),
                    seconds(section, row, "max"),
                )
            )
    return tuple(sorted(found, key=lambda k: -k.total))


def _calls(sections: Iterable[Section]) -> tuple[ApiCall, ...]:
    found = [
        ApiCall(row["name"], count, spent)
        for section in sections
        for row in section.rows
        if (count := whole(row.get("count"))) is not None
        and (spent := seconds(section, row, "total time")) is not None
    ]
    return tuple(sorted(found, key=lambda call: -call.seconds))


def _launch_call(sections: Iterable[Section]) -> float | None:
    """The median of the launch call that was made most often."""
    launches = [
        (whole(row.get("count")) or 0, seconds(section, row, "med"))
        for section in sections
        for row in section.rows
        if "Launch" in row["name"]
    ]
    return max(launches, key=lambda pair: pair[0], default=(0, None))[1]


def _transfers(times: Iterable[Section], sizes: Iterable[Section]) -> tuple[Transfer, ...]:
    size: dict[str, int] = {}
    for section in sizes:
        for row in section.rows:
            if (total := size_of(section, row, "total")) is not None:
                size[row["name"]] = total
    found = [
        Transfer(copy_kind(row["name"]), count, size[row["name"]], spent)
        for section in times
        for row in section.rows
        # Without its bytes it is no transfer: 0 of them would be invented.
        if row["name"] in size
        and (count := whole(row.get("count"))) is not None
        and (spent := seconds(section, row, "total time")) is not None
    ]
    return tuple(sorted(found, key=lambda transfer: -transfer.seconds))


def _with_ranges(trace: GpuTrace, kernels: list[Section], projections: list[Section]) -> GpuTrace:
    names: dict[str, dict[str, None]] = {}
    inside: dict[str, list[float]] = {}
    for section in kernels:
        for row in section.rows:
            names.setdefault(row["name"], {})[split_range(row["range"])[0]] = None
            launches, spent = whole(row.get("count")), seconds(section, row, "total time")
            if launches is not None and spent is not None:
                sums = inside.setdefault(row["range"], [0, 0.0])
                sums[0] += launches
                sums[1] += spent
    ranges = []
    for section in projections:
        for row in section.rows:
            entries, wall = whole(row.get("range inst")), seconds(section, row, "total range time")
            if entries is not None and wall is not None and row["range"] in inside:
                name, domain = split_range(row["range"])
                launches, spent = inside[row["range"]]
                ranges.append(GpuRange(name, domain, entries, wall, int(launches), spent))
    marked = tuple(
        kernel if kernel.ranges else replace(kernel, ranges=tuple(names.get(kernel.kernel.name, {})))
        for kernel in trace.kernels
    )
    return replace(trace, kernels=marked, ranges=tuple(sorted(ranges, key=lambda r: -r.gpu_seconds)))


def split_range(text: str) -> tuple[str, str | None]:
    """nsys writes `domain:name`, and `:name` for the default domain."""
    domain, colon, name = text.partition(":")
    return (name, domain or None) if colon else (text, None)
