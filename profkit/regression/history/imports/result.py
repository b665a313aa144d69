"""What another benchmark tool measured, as an entry; and its JSON, in which what has another type is nothing."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from profkit.analysis.comparability import all_fields
from profkit.core.codec import valid_text
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.statistics import combine, median
from profkit.core.types import Direction, Entry, Feature, Scope, SeriesKey, Value
from profkit.regression.history.entry import ID_LENGTH
from profkit.regression.times import microseconds

SIZE_LIMIT = 200 << 20  # bytes; raw samples of a thousand benchmarks are some MB
LONGEST_NAME = 4096  # characters


class JsonNode:
    """A value and its place. What is absent, null, NaN or of another type reads as nothing."""

    def __init__(self, data: object, place: str = "") -> None:
        self.data = data
        self.place = place

    def at(self, name: str) -> JsonNode:
        """The field of an object; a node of nothing where there is none."""
        inner = self.data.get(name) if isinstance(self.data, dict) else None
        return JsonNode(inner, f"{self.place}.{name}" if self.place else name)

    def items(self) -> Iterator[JsonNode]:
        """The elements of a list; none where it is no list."""
        for index, inner in enumerate(self.data if isinstance(self.data, list) else ()):
            yield JsonNode(inner, f"{self.place}[{index}]")

    def fields(self) -> Iterator[tuple[str, JsonNode]]:
        """The fields of an object; none where it is no object."""
        if isinstance(self.data, dict):
            for name in self.data:
                yield valid_text(str(name))[:LONGEST_NAME], self.at(name)

    def text(self) -> str | None:
        """A text that is not empty."""
        data = self.data
        return valid_text(data)[:LONGEST_NAME] if isinstance(data, str) and data else None

    def words(self) -> str | None:
        """A text, or a number as text."""
        if isinstance(self.data, bool) or not isinstance(self.data, (int, float)):
            return self.text()
        return str(self.data)[:LONGEST_NAME]

    def number(self) -> float | None:
        """A finite number; also one that is written as text, as nvbench does."""
        data = self.data
        if isinstance(data, bool) or not isinstance(data, (int, float, str)):
            return None
        try:
            value = float(data)
        except (ValueError, OverflowError):
            return None
        return value if math.isfinite(value) else None

    def truth(self) -> bool | None:
        """True or false."""
        return self.data if isinstance(self.data, bool) else None

    def numbers(self) -> tuple[float, ...]:
        """The finite numbers of a list."""
        values = (inner.number() for inner in self.items())
        return tuple(value for value in values if value is not None)


def load_json(path: Path) -> JsonNode:
    """The JSON at `path`. Raises UnreadableReport for what is none, and for what is larger than any result."""
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise UnreadableReport(f"{path} is larger than any benchmark's result ({SIZE_LIMIT >> 20} MiB)")
        text = path.read_bytes().decode("utf-8-sig")
        return JsonNode(json.loads(text))
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnreadableReport(f"{path} is not UTF-8 text, so no JSON") from error
    except RecursionError as error:
        raise UnreadableReport(f"{path} is nested too deeply to be a benchmark's result") from error
    except ValueError as error:
        raise UnreadableReport(f"{path} is not whole JSON ({error})") from error


@dataclass(frozen=True)
class MeasuredValue:
    """One number of one benchmark. `groups`: raw samples in the unit, one tuple per process, if it has them."""

    name: str  # of the benchmark
    metric: str
    unit: str
    better: Direction
    value: float
    groups: tuple[tuple[float, ...], ...] = ()
    doubt: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """A whole file of another tool. `started` None: it does not say when. `machine`: fields of comparability."""

    source: str
    workload: str
    backend: str
    started: str | None
    machine: Mapping[str, str | None]
    measured: tuple[MeasuredValue, ...]
    commit: str | None = None
    dirty: bool | None = None
    facts: Mapping[str, str | None] | None = None
    left_out: tuple[str, ...] = ()  # benchmarks without a value, and why


def time_values(
    name: str,
    groups: Sequence[Sequence[float]],
    summary: Mapping[str, float | None],
    doubt: str | None = None,
) -> Iterable[MeasuredValue]:
    """The times of one benchmark in seconds, as the tool tells them; a median that it does not tell, of its samples."""
    samples = tuple(tuple(group) for group in groups if group)
    times = dict(summary)
    if times.get("time.median") is None and samples:
        times["time.median"] = median([sample for group in samples for sample in group])
    for metric, value in times.items():
        if value is not None and value >= 0:
            yield MeasuredValue(
                name, metric, "s", "lower", value, samples if metric == "time.median" else (), doubt
            )


def entry_of_result(
    result: ToolResult, content: object, path: Path, workload: str | None = None, commit: str | None = None
) -> Entry:
    """The entry of a file. Its id is made of what the file holds, so it may be moved, copied or indented anew.

    Where the file does not say when it was measured, the time of the file itself stands for it, and `facts` say so.
    Raises UnreadableReport where nothing in it has a value.
    """
    if not result.measured:
        why = f": {result.left_out[0]}" if result.left_out else ""
        raise UnreadableReport(f"{path} is a result of {result.source}, but nothing in it has a value{why}")
    name = workload or result.workload
    facts = {**(result.facts or {}), "left out": "; ".join(result.left_out)}
    started = result.started if _is_moment(result.started) else None
    if started is None:
        started = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
        facts["started"] = "the time of the file; it does not say itself when it was measured"
    features = tuple(comparability_field(field, value) for field, value in result.machine.items() if value)
    values = {
        value.key: value for value in (_value(name, result.backend, measured) for measured in result.measured)
    }
    canonical = json.dumps(content, sort_keys=True).encode()
    return Entry(
        id=hashlib.sha256(canonical).hexdigest()[:ID_LENGTH],
        started=started,
        workload=name,
        backend=result.backend,
        state="complete",
        source=result.source,
        machine=_machine(features),
        features=features,
        commit=commit or result.commit,
        dirty=result.dirty,
        path=str(path),
        facts={field: text for field, text in facts.items() if text},
        values=tuple(values.values()),
    )


def _is_moment(text: str | None) -> bool:
    try:
        microseconds(text or "")
    except UsageError:
        return False
    return True


def comparability_field(name: str, value: str | None) -> Feature:
    """A field of comparability; one that the list does not know must be alike."""
    known = all_fields().get(name)
    return Feature(name, value, known.tier if known is not None else "must")


def _machine(features: Sequence[Feature]) -> str:
    words = sorted(f"{feature.name}={feature.value}" for feature in features if feature.tier == "must")
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def _value(workload: str, backend: str, measured: MeasuredValue) -> Value:
    centre = combine(measured.groups) if measured.groups else None
    key = SeriesKey(workload, backend, measured.metric, Scope("region", measured.name))
    return Value(
        key=key,
        unit=measured.unit,
        better=measured.better,
        value=measured.value,
        quality="measured",
        low=centre.low if centre is not None else None,
        high=centre.high if centre is not None else None,
        groups=measured.groups,
        doubt=measured.doubt,
    )
