"""Takes what is private out of an .ncu-rep, so that Nsight Compute still opens the copy.

The headers of the blocks hold host, process, command line, working folder and environment: they are written anew, with
their lengths. In the records (kernels, sources, cubins with their line tables) paths and known secrets are replaced by
as many other bytes, so that nothing in them moves. Metrics, sections and names of kernels are not touched.

Field numbers: Nsight Compute 2025.3, extras/FileFormat/*.proto.
"""

from __future__ import annotations

import mmap
import re
import shlex
import struct
from collections.abc import Callable
from pathlib import Path

from profkit.errors import UnreadableReport
from profkit.tools.ncu.blocks import Block, blocks, file_header, records
from profkit.tools.ncu.facts import split_command
from profkit.tools.ncu.same_length import Masker
from profkit.tools.ncu.scrub_csv import scrub_csv
from profkit.tools.ncu.wire import LENGTH, VARINT, Buffer, Malformed, fields
from profkit.tools.redact import (
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

FORMATS = ("ncu-rep", "ncu-csv")

# What becomes of one length-delimited field: None drops it, a function gives its new bytes.
_Change = Callable[[bytes, Redactor], "bytes | None"]
_Rules = dict[int, "_Change | _Rules"]


def scrub(source: Path, output: Path, form: str, redactor: Redactor) -> None:
    """Write a scrubbed copy of the report to `output`, which must not be there yet. Raises UnreadableReport."""
    if form == "ncu-csv":
        scrub_csv(source, output, redactor)
        return
    try:
        with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = tuple(blocks(data))
            kernels = _learn(data, found, redactor)
            masker = Masker(redactor, kernels)
            for block in found:
                for part in records(data, block):
                    masker.learn_sources(data, part)
            with output.open("xb") as copy:
                head = file_header(data)
                copy.write(data[: head.offset + head.size])
                for block in found:
                    header = _rewritten(data[block.header.offset : block.payload], _HEADER, redactor)
                    copy.write(struct.pack("<I", len(header)) + header)
                    end = block.payload
                    for part in records(data, block):
                        copy.write(struct.pack("<I", part.size) + masker.record(data, part))
                        end = part.offset + part.size
                    if block.payload_size is not None:  # what nothing announces is not read by anybody, too
                        copy.write(bytes(block.payload + block.payload_size - end))
    except Malformed as error:
        output.unlink(missing_ok=True)
        raise UnreadableReport(f"{source} is damaged, so nothing can be taken out of it: {error}") from error
    except ValueError as error:  # mmap of an empty file
        raise UnreadableReport(f"{source} cannot be read: {error}") from error


# ---------------------------------------------------------------- what is private in this file


def _learn(data: Buffer, found: tuple[Block, ...], redactor: Redactor) -> frozenset[bytes]:
    """Know host, command, folder and environment, and the names of kernels, which stay."""
    names: set[bytes] = set()
    for block in found:
        header = block.header
        for path, value in _strings(data, header.offset, header.offset + header.size, _KNOWN):
            text = value.decode("utf-8", "replace")
            if path in ((3, 3, 5), (3, 4, 5), (6, 2)):
                redactor.learn(text, HOST, strong=True)
            elif path == (3, 9, 4):
                redactor.learn_environment(text)
            elif path == (3, 9, 2):
                redactor.learn(text, FOLDER)
            elif path in ((3, 9, 3), (3, 11)):
                for word in split_command(text)[1] if path == (3, 11) else text.split():
                    redactor.learn(word, COMMAND)
                    redactor.learn(word.partition("=")[2], COMMAND)
            else:
                redactor.learn(text, PATH)
        for part in records(data, block):
            if part.kind == "kernel":
                names.update(
                    bytes(data[a:b])
                    for number, wire, a, b in fields(data, part.offset, part.offset + part.size)
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


def _strings(
    data: Buffer, at: int, end: int, wanted: set[tuple[int, ...]], path: tuple[int, ...] = ()
) -> list[tuple[tuple[int, ...], bytes]]:
    found: list[tuple[tuple[int, ...], bytes]] = []
    for number, wire, a, b in fields(data, at, end):
        here = (*path, number)
        if wire != LENGTH:
            continue
        if here in wanted:
            found.append((here, bytes(data[a:b])))
        elif any(name[: len(here)] == here for name in wanted):
            found.extend(_strings(data, a, b, wanted, here))
    return found


# ---------------------------------------------------------------- headers


def _rewritten(message: bytes, rules: _Rules, redactor: Redactor) -> bytes:
    """The message with its length-delimited fields changed by `rules`; one that they do not name is dropped.

    Numbers stay. So no text of a later version of the format comes through unseen.
    """
    written = bytearray()
    for number, wire, a, b in fields(message, 0, len(message)):
        if wire == VARINT:
            written += _varint(number << 3 | VARINT) + _varint(a)
        elif wire != LENGTH:
            written += _varint(number << 3 | wire) + message[a:b]
        else:
            rule = rules.get(number, _unknown)
            value = message[a:b]
            changed = _rewritten(value, rule, redactor) if isinstance(rule, dict) else rule(value, redactor)
            if changed is not None:
                written += _varint(number << 3 | LENGTH) + _varint(len(changed)) + changed
    return bytes(written)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _keep(value: bytes, _: Redactor) -> bytes:
    return value


def _release(value: bytes, _: Redactor) -> bytes:
    return plain_release(value.decode("utf-8", "replace")).encode()


def _redacted(value: bytes, redactor: Redactor) -> bytes:
    return redactor.text(value.decode("utf-8", "replace")).encode()


def _gone(kind: str) -> _Change:
    def drop(value: bytes, redactor: Redactor) -> None:
        redactor.note(kind, int(bool(value)))

    return drop


def _instead(kind: str, words: str) -> _Change:
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
_TOLD = {
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
    kept = ["ncu"] if line.strip() else []
    for name, told in options:
        if name in _TOLD and _VALUE.fullmatch(told or "-"):
            kept += [name, *([shlex.quote(redactor.text(told))] if told else [])]
    redactor.note(COMMAND, int(" ".join(kept) != line.strip()), " ".join(kept[:3]))
    return " ".join(kept).encode()


def _property(value: bytes, redactor: Redactor) -> bytes:
    """A device property: its key and its value."""
    texts = {number: value[a:b] for number, wire, a, b in fields(value, 0, len(value)) if wire == LENGTH}
    if re.search(rb"uuid|serial|guid|luid|mac", texts.get(1, b""), re.IGNORECASE) and texts.get(2, b"").strip(
        b"0-"
    ):
        redactor.note(DEVICE)
        return _rewritten(value, {1: _keep, 2: lambda text, _: re.sub(rb"[0-9a-zA-Z]", b"0", text)}, redactor)
    return _rewritten(value, {1: _keep, 2: _redacted}, redactor)


_SYSTEM: _Rules = {1: _keep, 2: _release, 3: _keep, 4: _keep, 5: _instead(HOST, "host"), 7: _gone(ADDRESS)}
_EXECUTABLE: _Rules = {
    1: _instead(PROCESS, "program"),
    2: _gone(FOLDER),
    3: _gone(COMMAND),
    4: _environment,
}
_SESSION: _Rules = {
    3: _SYSTEM,
    4: _SYSTEM,
    5: {1: _property},
    6: _keep,  # attributes of the devices, as numbers and names of chips
    7: _gone(OTHER),
    8: _keep,
    9: _EXECUTABLE,
    10: _keep,
    11: _command_line,
}
_HEADER: _Rules = {3: _SESSION, 4: _keep, 6: {2: _instead(HOST, "host"), 3: _instead(PROCESS, "process")}}
