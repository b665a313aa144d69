"""Reads `perf data convert --to-json` (linux-perf-json-version 1), sample by sample, in flat memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from profkit.analysis.stacks.merge import FrameTable
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import Frame, Report
from profkit.profilers.json_stream import JsonStream, TruncatedJson
from profkit.profilers.perf.samples import MergedEvents, frame_of

_SIGN = re.compile(rb'\s*\{\s*"linux-perf-json-version"\s*:')
MOST_CACHED = 1 << 17  # (symbol, library) pairs whose frame is kept


def looks_like_convert_json(head: bytes) -> bool:
    """True where the file begins as perf's JSON does."""
    return _SIGN.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def read_convert_json(path: Path) -> Report:
    """Merged stacks and tables by function, library and thread.

    perf up to 6.x gives neither the event's name nor a period: the weight is one per sample, the unit
    `samples`. Where a sample has an `event` or a `period`, they are used as in `perf script` text. Raises
    UnreadableReport.
    """
    reader = _Reader()
    try:
        with open_regular(path) as file:
            reader.read(file)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    except UnreadableReport as error:
        raise UnreadableReport(f"{path}: {error.message}") from error
    if not reader.events.samples:
        raise UnreadableReport(f"{path} holds no sample of perf")
    stacks, profiles = reader.events.answer()
    return Report(
        "perf",
        "perf-convert-json",
        reader.version,
        {**reader.facts, **reader.events.facts()},
        profiles=profiles,
        stacks=stacks,
        warnings=(*reader.warnings(), *reader.events.warnings()),
    )


class _Reader:
    def __init__(self) -> None:
        self._table = FrameTable()
        self.events = MergedEvents(self._table)
        self.version: str | None = None
        self.facts: dict[str, str] = {}
        self._known: dict[tuple[str, str], int] = {}
        self._cut_short = False
        self._odd = 0

    def warnings(self) -> Iterator[str]:
        if self._cut_short:
            yield "the file is cut short; what was read until there is kept"
        if self._odd:
            yield f"{self._odd} entries were not understood and left out"

    def read(self, file: IO[bytes]) -> None:
        stream = JsonStream(file)
        seen = False
        try:
            for key in stream.items():
                if not seen and key != "linux-perf-json-version":
                    raise UnreadableReport("not perf's JSON: it does not begin with linux-perf-json-version")
                seen = True
                if key == "samples":
                    for sample in stream.elements():
                        self._sample(sample)
                else:
                    value = stream.value()
                    if key == "headers" and isinstance(value, dict):
                        self._headers(value)
        except TruncatedJson:
            if not seen:
                raise UnreadableReport("not perf's JSON: it ends before anything was said") from None
            self._cut_short = True

    def _headers(self, headers: Mapping[str, object]) -> None:
        """What decides whether two recordings may be compared; never the host's name or the command line."""
        version = headers.get("perf-version")
        self.version = version if isinstance(version, str) else None
        for key, name in (("arch", "arch"), ("cpu-desc", "cpu"), ("os-release", "kernel")):
            value = headers.get(key)
            if isinstance(value, str):
                self.facts[name] = value

    def _sample(self, sample: object) -> None:
        if not isinstance(sample, dict):
            self._odd += 1
            return
        chain = sample.get("callchain")
        ids = tuple(self._frames(chain if isinstance(chain, list) else [sample]))
        event, period, comm = sample.get("event"), sample.get("period"), sample.get("comm")
        counted = isinstance(period, int) and not isinstance(period, bool) and period >= 0
        self.events.add(
            event if isinstance(event, str) else "",
            period if counted else None,
            comm if isinstance(comm, str) else "[unknown]",
            ids,
        )

    def _frames(self, chain: list[object]) -> Iterator[int]:
        """Innermost first, as perf writes them."""
        for entry in chain:
            if not isinstance(entry, dict):
                self._odd += 1
                continue
            symbol, dso = entry.get("symbol"), entry.get("dso")
            key = (symbol if isinstance(symbol, str) else "", dso if isinstance(dso, str) else "")
            number = self._known.get(key)
            if number is None:
                if len(self._known) >= MOST_CACHED:
                    self._known.clear()
                frame: Frame = frame_of(key[0], key[1] or None)
                number = self._known[key] = self._table.add(frame)
            yield number
