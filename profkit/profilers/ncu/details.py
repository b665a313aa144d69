"""What a report says of single instructions of a kernel, and what NVIDIA's own rules concluded of it.

Per-instruction values are instances of a metric, by the address of the instruction; the lowest address that was
executed is the kernel's begin. RuleResult, fields by number (seen in reports of 2022.4 to 2025.3): 1 identifier,
2 title, 3 body {1 items {1 message {1 text, 2 kind, 4 title}, 10 speed-up {1 local or global, 2 %}}}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from profkit.core.types import KernelInstruction, Scope, ToolRule
from profkit.profilers.ncu.blocks import (
    LENGTH,
    VARINT,
    Buffer,
    ReportMessage,
    read_fields,
    read_float64,
    read_text,
)
from profkit.profilers.ncu.cubin import KernelCode, read_kernel_code
from profkit.profilers.ncu.launches import finite_number
from profkit.profilers.ncu.results import metric_value

_METRIC, _RULE = 13, 19  # fields of ProfileResult
_CUBIN = 4  # field of SourceData
_GLOBAL_SPEEDUP = 2
SECTORS, SECTORS_IDEAL = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
WAVEFRONTS, WAVEFRONTS_IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
EXECUTED, SAMPLES = "inst_executed", "smsp__pcsamp_sample_count"
_STALL = re.compile(r"^smsp__pcsamp_warps_issue_stalled_(\w+?)(?<!_not_issued)$")
MOST_INSTRUCTIONS = 12  # of a kernel that are kept: more than anybody reads
_MARKUP = re.compile(r"@\w+:([^:@]*)(?::[^@]*)?@")


def is_per_instruction(name: str) -> bool:
    """Whether the instances of this metric are read."""
    return name in (SECTORS, SECTORS_IDEAL, WAVEFRONTS, WAVEFRONTS_IDEAL, EXECUTED, SAMPLES) or (
        _STALL.match(name) is not None and not name.endswith("_not_issued")
    )


def read_kernel_details(
    data: Buffer,
    part: ReportMessage,
    names: Mapping[int, str],
    scope: Scope,
    code_of: Callable[[], KernelCode | None],
) -> tuple[tuple[KernelInstruction, ...], tuple[ToolRule, ...], bool]:
    """Of the result in `part` its costliest instructions, the results of rules, and whether it is a debug build.

    `names` are the metrics to read by the id of their name. Raises MalformedMessage.
    """
    metrics: dict[str, dict[int, float]] = {}
    rules: list[ToolRule] = []
    for number, wire, a, b in read_fields(data, part.offset, part.offset + part.size):
        if wire != LENGTH:
            continue
        if number == _METRIC:
            name, instances = _instances(data, a, b, names)
            if name is not None and instances:
                metrics[name] = instances
        elif number == _RULE:
            rules += _rule_results(data, a, b, scope)
    code = code_of()
    return tuple(_instructions(metrics, scope, code)), tuple(rules), code is not None and code.debug


def find_code(data: Buffer, sources: Sequence[ReportMessage], symbol: str) -> KernelCode | None:
    """The code of a kernel out of the cubins that a report carries. Raises MalformedMessage."""
    for part in sources:
        for number, wire, a, b in read_fields(data, part.offset, part.offset + part.size):
            if number == _CUBIN and wire == LENGTH:
                code = read_kernel_code(bytes(data[a:b]), symbol)
                if code is not None:
                    return code
    return None


def _instances(
    data: Buffer, at: int, end: int, names: Mapping[int, str]
) -> tuple[str | None, dict[int, float]]:
    """ProfileMetricResult: its name where that is wanted, and its values by address."""
    name: str | None = None
    values: dict[int, float] = {}
    for number, wire, a, b in read_fields(data, at, end):
        if number == 1 and wire == VARINT:
            name = names.get(a)
            if name is None:
                return None, {}
        elif number == 3 and wire == LENGTH:
            address = value = None
            for inner, inner_wire, c, d in read_fields(data, a, b):
                if inner_wire == LENGTH and inner in (1, 2):
                    found = finite_number(metric_value(data, c, d))
                    address, value = (found, value) if inner == 1 else (address, found)
            if address is not None and value is not None:
                values[int(address)] = value
    return name, values


def _instructions(
    metrics: Mapping[str, Mapping[int, float]], scope: Scope, code: KernelCode | None
) -> Iterator[KernelInstruction]:
    """The instructions with the most stall samples, excess sectors or conflicts, each as a share of the kernel's."""
    executed = metrics.get(EXECUTED)
    if not executed:
        return
    base = min(executed)
    samples = metrics.get(SAMPLES, {})
    excess = _excess(metrics, SECTORS, SECTORS_IDEAL)
    conflicts = _excess(metrics, WAVEFRONTS, WAVEFRONTS_IDEAL)
    shares = [_shares(values) for values in (samples, excess, conflicts)]
    ranked: dict[int, None] = {}
    for values in shares:
        ranked |= dict.fromkeys(sorted(values, key=lambda place: -values[place])[: MOST_INSTRUCTIONS // 2])
    stalls = {
        match[1]: values for name, values in metrics.items() if (match := _STALL.match(name)) is not None
    }
    for address in sorted(ranked, key=lambda place: -max(values.get(place, 0.0) for values in shares)):
        reasons = {
            reason: values.get(address, 0.0) for reason, values in stalls.items() if reason != "selected"
        }
        reason = max(reasons, key=lambda key: reasons[key]) if any(reasons.values()) else None
        offset = address - base
        line = code.line(offset) if code is not None else None
        yield KernelInstruction(
            scope,
            offset,
            code.instruction(offset) if code is not None else None,
            line.file if line is not None else None,
            line.line if line is not None else None,
            samples=shares[0].get(address, 0.0),
            excess_sectors=shares[1].get(address, 0.0),
            conflicts=shares[2].get(address, 0.0),
            stall=reason,
        )


def _excess(metrics: Mapping[str, Mapping[int, float]], name: str, ideal: str) -> Mapping[int, float]:
    least = metrics.get(ideal, {})
    return {
        address: value - least[address]
        for address, value in metrics.get(name, {}).items()
        if address in least and value > least[address]
    }


def _shares(values: Mapping[int, float]) -> dict[int, float]:
    total = sum(values.values())
    return {address: value / total for address, value in values.items()} if total > 0 else {}


def _rule_results(data: Buffer, at: int, end: int, scope: Scope) -> Iterator[ToolRule]:
    """The messages of one rule that come with an estimated speed-up."""
    name = title = ""
    for number, wire, a, b in read_fields(data, at, end):
        if wire != LENGTH:
            continue
        if number == 1:
            name = read_text(data, a, b)
        elif number == 2:
            title = read_text(data, a, b)
        elif number == 3:
            for inner, inner_wire, c, d in read_fields(data, a, b):
                if inner == 1 and inner_wire == LENGTH:
                    rule = _rule_item(data, c, d, scope)
                    if rule is not None:
                        yield replace(rule, name=name, title=rule.title or title)


def _rule_item(data: Buffer, at: int, end: int, scope: Scope) -> ToolRule | None:
    text = title = ""
    speedup: float | None = None
    whole = False
    for number, wire, a, b in read_fields(data, at, end):
        if wire != LENGTH:
            continue
        for inner, inner_wire, c, d in read_fields(data, a, b) if number in (1, 10) else ():
            if number == 1 and inner_wire == LENGTH and inner in (1, 4):
                words = _MARKUP.sub(r"\1", read_text(data, c, d))
                text, title = (words, title) if inner == 1 else (text, words)
            elif number == 10 and inner == 1 and inner_wire == VARINT:
                whole = c == _GLOBAL_SPEEDUP
            elif number == 10 and inner == 2 and d - c == 8:
                speedup = read_float64(data, c) / 100
    if speedup is None or not 0 <= speedup <= 1:
        return None
    return ToolRule(scope, "", title, text, speedup, whole)
