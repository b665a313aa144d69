"""The file a profiled process leaves: which regions it entered, how long each took, what it benchmarked.

Written inside the workload (encode, save), read by profkit afterwards (decode).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from profkit.core.errors import UnreadableReport
from profkit.core.types import Directive, SampleSet, TritonWork

SCHEMA = "profkit.region/1"
LARGEST = 256 * 1024 * 1024  # bytes; a record of 65,536 samples has 2 MB, so more than this is something else


@dataclass(frozen=True)
class RegionTimes:
    """One region of one process. `seconds` has every `every`-th entry; the first is entry 0."""

    name: str
    entries: int
    iterations: int  # one per entry, or what a benchmark ran inside
    seconds: tuple[float, ...]
    every: int = 1


@dataclass(frozen=True)
class BenchmarkTimes:
    """One benchmark of one process. `flops` and `bytes` are per iteration, as the workload declares them."""

    name: str
    sample_set: SampleSet
    flops: float | None = None
    bytes: float | None = None


@dataclass(frozen=True)
class RegionRecord:
    """All that one process recorded. `notes` say what did not work, an unanswered switch for one."""

    pid: int
    pass_name: str
    regions: tuple[RegionTimes, ...] = ()
    benchmarks: tuple[BenchmarkTimes, ...] = ()
    precision: float = 0.01
    notes: tuple[str, ...] = ()
    triton: TritonWork | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # versions of what the process had loaded
    # Outermost entries of regions on the clock of a trace (macOS: mach absolute time), begin and end in ns.
    spans: tuple[tuple[int, int], ...] = ()
    spans_left_out: int = 0  # later entries, of which only the number is kept


def encode_record(record: RegionRecord) -> str:
    """The record as one JSON document, without NaN."""
    data = asdict(record)
    data["pass"] = data.pop("pass_name")
    return json.dumps({"schema": SCHEMA, **data}, allow_nan=False)


def decode_record(text: str, origin: str = "region record") -> RegionRecord:
    """The record in `text`; raises UnreadableReport with `origin` in the sentence when it is none."""
    from profkit.core import codec  # only the reading side pays for it

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"{origin} is not a region record: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UnreadableReport(f"{origin} is not a region record: it does not say {SCHEMA}")
    try:
        return RegionRecord(
            pid=int(data["pid"]),
            pass_name=str(data["pass"]),
            regions=tuple(_region(entry) for entry in data.get("regions", ())),
            benchmarks=tuple(
                BenchmarkTimes(
                    name=str(entry["name"]),
                    sample_set=codec.build(SampleSet, entry["sample_set"], f"{origin}: sample_set"),
                    flops=_positive(entry.get("flops")),
                    bytes=_positive(entry.get("bytes")),
                )
                for entry in data.get("benchmarks", ())
            ),
            precision=_positive(data.get("precision")) or 0.01,
            notes=tuple(str(note) for note in data.get("notes", ())),
            triton=codec.build(TritonWork, data["triton"], f"{origin}: triton")
            if data.get("triton")
            else None,
            packages={str(name): str(version) for name, version in dict(data.get("packages") or {}).items()},
            spans=tuple(_span(span) for span in data.get("spans", ())),
            spans_left_out=int(data.get("spans_left_out", 0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UnreadableReport(f"{origin} is damaged: {type(error).__name__}: {error}") from error


def _region(entry: dict[str, Any]) -> RegionTimes:
    seconds = tuple(float(value) for value in entry["seconds"])
    if not all(0 <= value < float("inf") for value in seconds):
        raise ValueError("a time that is no time")
    entries, iterations, every = int(entry["entries"]), int(entry["iterations"]), int(entry.get("every", 1))
    if entries < len(seconds) or iterations < 0 or every < 1:
        raise ValueError("entries that do not add up")
    return RegionTimes(str(entry["name"]), entries, iterations, seconds, every)


def _span(entry: Any) -> tuple[int, int]:
    begin, end = entry
    if type(begin) is not int or type(end) is not int or not 0 <= begin <= end:
        raise ValueError("a span that is no span")
    return begin, end


def _positive(value: object) -> float | None:
    if value is None:
        return None
    number = float(value) if isinstance(value, (int, float)) else float("nan")
    if not 0 < number < float("inf"):
        raise ValueError(f"{value!r} where a positive number belongs")
    return number


def save_record(record: RegionRecord, path: str) -> None:
    """Write whole or not at all; raises OSError or ValueError."""
    partial = f"{path}.tmp"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(encode_record(record))
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise


def parse_directive(text: str) -> Directive:
    """The directive in an environment variable; raises UnreadableReport."""
    from profkit.core import codec

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"the directive is not JSON: {error}") from error
    return codec.build(Directive, data, "directive")
