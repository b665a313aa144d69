"""The file a profiled process leaves: which regions it entered, how long each took, what it benchmarked.

Written inside the workload (encode, save), read by profkit afterwards (decode).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from profkit.core.errors import UnreadableReport
from profkit.core.types import Fact, SampleSet

SCHEMA = "profkit.region/2"
# A record of 65,536 samples has 2 MB: more than this is something else
MAX_BYTES = 256 * 1024 * 1024


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
    notes: tuple[Fact, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)  # versions of what the process had loaded
    # Outermost entries of regions on the clock of a trace (macOS: mach absolute time), begin and end in ns.
    spans: tuple[tuple[int, int], ...] = ()
    spans_left_out: int = 0  # later entries, of which only the number is kept
    reference_loop: tuple[float, ...] = ()  # seconds of fixed arithmetic between timed regions
    begun: tuple[
        float, ...
    ] = ()  # when outermost entries began, in s of time.monotonic; of many every second one
    clocks: tuple[float, ...] = ()  # the device's SM clock in Hz, after timed regions
    held_by: tuple[str, ...] = ()  # why the device held it down


def encode_record(record: RegionRecord) -> str:
    """Return the record as one JSON document, without NaN."""
    data = asdict(record)
    data["pass"] = data.pop("pass_name")
    return json.dumps({"schema": SCHEMA, **data}, allow_nan=False)


def decode_record(data: object) -> RegionRecord:
    """Return the record that was written so; raises UnreadableReport."""
    from profkit.core import codec  # only the reading side pays for it

    plain = codec.check_schema(data, SCHEMA, "a region record")
    record = codec.from_plain_data(RegionRecord, {**plain, "pass_name": plain.get("pass")})
    wrong = any(not t >= 0 for region in record.regions for t in region.seconds) or not record.precision > 0
    if wrong or any(len(span) != 2 or not 0 <= span[0] <= span[1] for span in record.spans):
        raise UnreadableReport("a time that is not a time")
    return record


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
