"""A binary perf.data: told by its magic, turned into text by perf itself; its header's facts are read here.

Layout: tools/perf/Documentation/perf.data-file-format.txt of the Linux sources.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from profkit.errors import UnreadableReport
from profkit.tools.perf.record_command import script_argv

_LITTLE, _BIG = b"PERFILE2", b"2ELIFREP"
# Bits of the header's feature set. HOSTNAME (3) is known too, and left where it is.
_VERSION, _ARCH, _CPU, _COMMAND, _EVENTS = 5, 6, 8, 11, 12
_COMM, _FORK = 3, 7  # record types that name every process
_MOST_SECTION = 1 << 20  # bytes of one feature; real ones have some hundred


@dataclass(frozen=True)
class DataHeader:
    """What a recording says of itself. `command` is perf's own command line. Never the host's name."""

    version: str | None = None
    arch: str | None = None
    cpu: str | None = None
    command: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


def is_perf_data(head: bytes) -> bool:
    """True for a recording of perf (magic PERFILE2, either byte order)."""
    return head.startswith((_LITTLE, _BIG))


looks_like = is_perf_data


def conversion_argv(perf_data: Path, output: Path) -> tuple[str, ...]:
    """The command that turns `perf_data` into text for `script.read_script`, to be run where perf is."""
    from profkit.tools.perf.find import find_perf  # here: only to be converted does a recording need perf

    return script_argv(perf_data, output, perf=find_perf().path or "perf")


def read_header(path: Path) -> DataHeader:
    """The facts in the header. Raises UnreadableReport where the file is cut off or is no perf.data.

    A recording that was piped has no such facts, and one whose perf was killed has no table of them: both
    give an empty header.
    """
    with _open(path) as file:
        header = _Header(file, path)
        sections = dict(header.features())
        strings = {bit: header.string(*sections[bit]) for bit in (_VERSION, _ARCH, _CPU) if bit in sections}
        return DataHeader(
            strings.get(_VERSION),
            strings.get(_ARCH),
            strings.get(_CPU),
            header.strings(*sections[_COMMAND]) if _COMMAND in sections else (),
            header.event_names(*sections[_EVENTS]) if _EVENTS in sections else (),
        )


def recorded_pids(path: Path) -> frozenset[int]:
    """The number of every process that the recording saw start or change its name.

    Raises UnreadableReport as read_header; a recording that ends early gives what stands before its end.
    """
    pids = set()
    with _open(path) as file:
        header = _Header(file, path)
        record = struct.Struct(header.order + "IHH")
        position, end = header.data
        end = min(end, header.size)
        if position >= end:
            return frozenset()
        file.seek(position)
        # Walked in large pieces: a record is 64 KiB at most, and a recording has millions of them.
        piece, at = b"", 0
        while position < end:
            if at + 65536 > len(piece):
                piece, at = piece[at:] + file.read(min(1 << 22, end)), 0
            if at + 12 > len(piece):
                break
            kind, _, length = record.unpack_from(piece, at)
            if length < 8:
                break
            if kind in (_COMM, _FORK):
                pids.add(struct.unpack_from(header.order + "I", piece, at + 8)[0])
            at += length
            position += length
    return frozenset(pids)


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error


class _Header:
    """The fixed part of the file, and access to its feature sections."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        head = file.read(104)
        if not is_perf_data(head):
            raise UnreadableReport(f"{path} is no perf.data: it does not begin with PERFILE2")
        self.order = "<" if head.startswith(_LITTLE) else ">"
        self.size = file.seek(0, os.SEEK_END)
        if len(head) < 16:
            raise UnreadableReport(f"{path} is cut off within its header")
        (header_size,) = struct.unpack_from(self.order + "Q", head, 8)
        self._features = 0
        if header_size == 16:  # written to a pipe: records follow at once
            self.data = (16, self.size)
            return
        if len(head) < 104:
            raise UnreadableReport(f"{path} is cut off within its header")
        start, length = struct.unpack_from(self.order + "QQ", head, 40)
        # perf fills in the length when it ends; a killed perf leaves 0, and records up to the end of the
        # file.
        self.data = (start, start + length if length else self.size)
        if length:
            for word, value in enumerate(struct.unpack_from(self.order + "4Q", head, 72)):
                self._features |= value << (64 * word)

    def features(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """(bit, (offset, size)) of every feature; their table stands right behind the records."""
        bits = [bit for bit in range(256) if self._features >> bit & 1]
        self._file.seek(min(self.data[1], self.size))  # what a damaged header says may lie anywhere
        table = self._file.read(16 * len(bits))
        if len(table) < 16 * len(bits):
            raise UnreadableReport(f"{self._path} is cut off: perf's header names parts that are not there")
        for index, bit in enumerate(bits):
            yield bit, struct.unpack_from(self.order + "QQ", table, 16 * index)

    def string(self, offset: int, size: int) -> str | None:
        texts = self._texts(self._section(offset, size), 0, 1)
        return texts[0] or None if texts else None

    def strings(self, offset: int, size: int) -> tuple[str, ...]:
        data = self._section(offset, size)
        return tuple(self._texts(data, 4, self._number(data, 0)))

    def event_names(self, offset: int, size: int) -> tuple[str, ...]:
        data = self._section(offset, size)
        count, attribute = self._number(data, 0), self._number(data, 4)
        names, position = [], 8
        for _ in range(min(count, 1000)):
            position += attribute
            ids = self._number(data, position)
            found = self._texts(data, position + 4, 1)
            if not found:
                break
            names.append(found[0])
            position += 8 + self._number(data, position + 4) + 8 * ids
        return tuple(names)

    def _section(self, offset: int, size: int) -> bytes:
        if size > _MOST_SECTION or offset + size > self.size:
            raise UnreadableReport(
                f"{self._path} is cut off or damaged: a part of its header lies outside it"
            )
        self._file.seek(offset)
        return self._file.read(size)

    def _number(self, data: bytes, position: int) -> int:
        if position + 4 > len(data):
            return 0
        number: int = struct.unpack_from(self.order + "I", data, position)[0]
        return number

    def _texts(self, data: bytes, position: int, count: int) -> list[str]:
        """`count` strings, each a length and as many bytes, padded with zeros."""
        texts: list[str] = []
        while len(texts) < min(count, 10_000) and position + 4 <= len(data):
            length = self._number(data, position)
            raw = data[position + 4 : position + 4 + length]
            texts.append(raw.partition(b"\0")[0].decode("utf-8", "replace"))
            position += 4 + length
        return texts
