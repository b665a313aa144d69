"""Takes what is private out of an .ncu-rep, so that Nsight Compute still opens the copy, and out of ncu's CSV.

The headers of the blocks hold host, process, command line, working folder and environment: they are written anew, with
their lengths. In the records (kernels, sources, cubins with their line tables) paths and known secrets are replaced by
as many other bytes, so that nothing in them moves. Metrics, sections and names of kernels are not touched.

Field numbers: Nsight Compute 2025.3, extras/FileFormat/*.proto.
"""

from __future__ import annotations

import csv
import mmap
import re
import shlex
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular, open_regular_text
from profkit.profilers.files import lines_of
from profkit.profilers.ncu.blocks import (
    LENGTH,
    VARINT,
    Buffer,
    MalformedMessage,
    ReportBlock,
    read_blocks,
    read_fields,
    read_file_header,
    read_records,
)
from profkit.profilers.ncu.report import split_command
from profkit.profilers.ncu.scrub_records import Masker
from profkit.profilers.redact import (
    ADDRESS,
    COMMAND,
    DEVICE,
    ENVIRONMENT,
    FOLDER,
    HOST,
    OTHER,
    PATH,
    PROCESS,
    Redactor,
    plain_release,
)

_PRIVATE = {"Process Name": (PROCESS, "process"), "Host Name": (HOST, "host")}
_NUMBER = re.compile(r"[\d.,;+\-eE% ]*")


def scrub_csv(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy the text to `output`; the table keeps its separator and its quotes."""
    try:
        with (
            open_regular_text(source, encoding="utf-8", errors="surrogateescape", newline="") as lines,
            output.open("x", encoding="utf-8", errors="surrogateescape", newline="") as copy,
        ):
            _copy_scrubbed(lines_of(lines, source), copy, redactor)
    except csv.Error as error:
        raise UnreadableReport(f"{source} is damaged, so nothing can be taken out of it: {error}") from error


def _copy_scrubbed(lines: Iterator[str], copy: TextIO, redactor: Redactor) -> None:
    for line in lines:
        if not line.lstrip('"').startswith("ID") or "Process ID" not in line:
            copy.write(redactor.text(line))
            continue
        separator = next((mark for mark in ",;\t" if f"ID{mark}" in line.replace('"', "")), ",")
        end = line[len(line.rstrip("\r\n")) :] or "\n"
        rows = csv.reader(_table(line, lines), delimiter=separator)
        quoting = csv.QUOTE_ALL if line.startswith('"') else csv.QUOTE_MINIMAL
        table = csv.writer(copy, delimiter=separator, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
        titles: list[str] = []
        for row in rows:
            titles = row if row[:1] == ["ID"] else titles
            table.writerow(row if row is titles else _row(titles, row, redactor))


def _table(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _row(titles: list[str], row: list[str], redactor: Redactor) -> list[str]:
    if len(row) != len(titles):  # a line of ncu's own between or behind the rows
        return [redactor.text(cell) for cell in row]
    return [_cell(title, cell, redactor) for title, cell in zip(titles, row, strict=True)]


def _cell(title: str, cell: str, redactor: Redactor) -> str:
    if title in _PRIVATE and cell:
        kind, instead = _PRIVATE[title]
        redactor.note(kind, 1, instead)
        return instead
    if title == "Kernel Name":
        return redactor.kernel(cell)
    return cell if _NUMBER.fullmatch(cell) else redactor.text(cell)


# What becomes of one length-delimited field: None drops it, a function gives its new bytes.
_Change = Callable[[bytes, Redactor], "bytes | None"]
Rules = dict[int, "_Change | Rules"]


def rewrite_message(message: bytes, rules: Rules, redactor: Redactor) -> bytes:
    """The message with its length-delimited fields changed by `rules`; one that they do not name is dropped.

    Numbers stay. So no text of a later version of the format comes through unseen.
    """
    written = bytearray()
    for number, wire, a, b in read_fields(message, 0, len(message)):
        if wire == VARINT:
            written += _encode_varint(number << 3 | VARINT) + _encode_varint(a)
        elif wire != LENGTH:
            written += _encode_varint(number << 3 | wire) + message[a:b]
        else:
            rule = rules.get(number, _unknown)
            value = message[a:b]
            changed = (
                rewrite_message(value, rule, redactor) if isinstance(rule, dict) else rule(value, redactor)
            )
            if changed is not None:
                written += _encode_varint(number << 3 | LENGTH) + _encode_varint(len(changed)) + changed
    return bytes(written)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _keep(value: bytes, _: Redactor) -> bytes:
    return value


def _scrub_release(value: bytes, _: Redactor) -> bytes:
    return plain_release(value.decode("utf-8", "replace")).encode()


def _scrub_text(value: bytes, redactor: Redactor) -> bytes:
    return redactor.text(value.decode("utf-8", "replace")).encode()


def _drop_as(kind: str) -> _Change:
    def drop(value: bytes, redactor: Redactor) -> None:
        redactor.note(kind, int(bool(value)))

    return drop


def _replace_with(kind: str, words: str) -> _Change:
    def replace(value: bytes, redactor: Redactor) -> bytes:
        redactor.note(kind, int(bool(value) and value != words.encode()), words)
        return words.encode() if value else value

    return replace


def _unknown(value: bytes, redactor: Redactor) -> None:
    redactor.note(OTHER, int(bool(value)))


def _environment(value: bytes, redactor: Redactor) -> None:
    redactor.note(
        ENVIRONMENT, redactor.learn_environment(value.decode("utf-8", "replace")) or int(bool(value))
    )


# Options of ncu that decide what may be compared, or what is missing from a report; all others go.
_KEPT_SETTINGS = {
    "--clock-control", "--cache-control", "--replay-mode", "--set", "--section", "--metrics", "--launch-skip",
    "--launch-count", "--launch-skip-before-match", "-s", "-c", "--filter-mode", "--target-processes", "--nvtx",
    "--nvtx-include", "--nvtx-exclude", "--kernel-name", "-k", "--kernel-name-base", "--kernel-id", "--range-filter",
    "--profile-from-start", "--import-source", "--graph-profiling", "--app-replay-match", "--app-replay-mode",
    "--app-replay-buffer", "--range-replay-options", "--pm-sampling-interval", "--pm-sampling-buffer-size",
    "--pm-sampling-max-passes", "--sampling-interval", "--sampling-max-passes", "--sampling-buffer-size",
    "--disable-profiler-start-stop", "--apply-rules", "--warp-sampling-interval", "--disable-extra-suffixes",
    "--pipeline-boost-state",
}  # fmt: skip
_VALUE = re.compile(r"[\w.,:%*+()\[\]^$|?@&<> -][\w.,:%*+()\[\]^$|?@&<>/ -]{0,65535}")


def _command_line(value: bytes, redactor: Redactor) -> bytes:
    """ncu's own options without the workload, and without what names files."""
    line = value.decode("utf-8", "replace")
    options, _ = split_command(line)
    words = ["ncu"] if line.strip() else []
    for name, setting in options:
        if name in _KEPT_SETTINGS and _VALUE.fullmatch(setting or "-"):
            words += [name, *([shlex.quote(redactor.text(setting))] if setting else [])]
    redactor.note(COMMAND, int(" ".join(words) != line.strip()), " ".join(words[:3]))
    return " ".join(words).encode()


def _property(value: bytes, redactor: Redactor) -> bytes:
    """A device property: its key and its value."""
    texts = {number: value[a:b] for number, wire, a, b in read_fields(value, 0, len(value)) if wire == LENGTH}
    if re.search(rb"uuid|serial|guid|luid|mac", texts.get(1, b""), re.IGNORECASE) and texts.get(2, b"").strip(
        b"0-"
    ):
        redactor.note(DEVICE)
        return rewrite_message(
            value, {1: _keep, 2: lambda text, _: re.sub(rb"[0-9a-zA-Z]", b"0", text)}, redactor
        )
    return rewrite_message(value, {1: _keep, 2: _scrub_text}, redactor)


_SYSTEM: Rules = {
    1: _keep,
    2: _scrub_release,
    3: _keep,
    4: _keep,
    5: _replace_with(HOST, "host"),
    7: _drop_as(ADDRESS),
}
_EXECUTABLE: Rules = {
    1: _replace_with(PROCESS, "program"),
    2: _drop_as(FOLDER),
    3: _drop_as(COMMAND),
    4: _environment,
}
_SESSION: Rules = {
    3: _SYSTEM,
    4: _SYSTEM,
    5: {1: _property},
    6: _keep,  # attributes of the devices, as numbers and names of chips
    7: _drop_as(OTHER),
    8: _keep,
    9: _EXECUTABLE,
    10: _keep,
    11: _command_line,
}
HEADER: Rules = {
    3: _SESSION,
    4: _keep,
    6: {2: _replace_with(HOST, "host"), 3: _replace_with(PROCESS, "process")},
}


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Write a scrubbed copy of the report to `output`, which must not be there yet. Raises UnreadableReport."""
    try:
        with open_regular(source) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            blocks = tuple(read_blocks(data))
            kernels = _learn_private(data, blocks, redactor)
            masker = Masker(redactor, kernels)
            for block in blocks:
                for part in read_records(data, block):
                    masker.learn_sources(data, part)
            with output.open("xb") as copy:
                head = read_file_header(data)
                copy.write(data[: head.offset + head.size])
                for block in blocks:
                    header = rewrite_message(data[block.header.offset : block.payload], HEADER, redactor)
                    copy.write(struct.pack("<I", len(header)) + header)
                    end = block.payload
                    for part in read_records(data, block):
                        copy.write(struct.pack("<I", part.size) + masker.record(data, part))
                        end = part.offset + part.size
                    if block.payload_size is not None:  # what nothing announces is not read by anybody, too
                        copy.write(bytes(block.payload + block.payload_size - end))
    except MalformedMessage as error:
        output.unlink(missing_ok=True)
        raise UnreadableReport(f"{source} is damaged, so nothing can be taken out of it: {error}") from error
    except ValueError as error:  # mmap of an empty file
        raise UnreadableReport(f"{source} cannot be read: {error}") from error


# ---------------------------------------------------------------- what is private in this file


def _learn_private(data: Buffer, blocks: tuple[ReportBlock, ...], redactor: Redactor) -> frozenset[bytes]:
    """Know host, command, folder and environment, and the names of kernels, which stay."""
    names: set[bytes] = set()
    for block in blocks:
        header = block.header
        for path, value in _find_strings(data, header.offset, header.offset + header.size, _KNOWN):
            text = value.decode("utf-8", "replace")
            if path in ((3, 3, 5), (3, 4, 5), (6, 2)):
                redactor.learn_name(text, HOST)
            elif path == (3, 9, 4):
                redactor.learn_environment(text)
            elif path == (3, 9, 2):
                redactor.learn(text, FOLDER)
            elif path in ((3, 9, 3), (3, 11)):
                redactor.learn_command(split_command(text)[1] if path == (3, 11) else text.split())
            else:
                redactor.learn(text, PATH)
        for part in read_records(data, block):
            if part.kind == "kernel":
                names.update(
                    bytes(data[a:b])
                    for number, wire, a, b in read_fields(data, part.offset, part.offset + part.size)
                    if wire == LENGTH and number in (5, 6, 7, 31)
                )
    return frozenset(names)


_KNOWN = {
    (3, 3, 5),
    (3, 4, 5),
    (3, 3, 7, 1),
    (3, 4, 7, 1),
    (6, 2),
    (6, 3),
    (3, 9, 1),
    (3, 9, 2),
    (3, 9, 3),
    (3, 9, 4),
    (3, 11),
}


def _find_strings(
    data: Buffer, at: int, end: int, wanted: set[tuple[int, ...]], path: tuple[int, ...] = ()
) -> list[tuple[tuple[int, ...], bytes]]:
    strings: list[tuple[tuple[int, ...], bytes]] = []
    for number, wire, a, b in read_fields(data, at, end):
        here = (*path, number)
        if wire != LENGTH:
            continue
        if here in wanted:
            strings.append((here, bytes(data[a:b])))
        elif any(name[: len(here)] == here for name in wanted):
            strings.extend(_find_strings(data, a, b, wanted, here))
    return strings
