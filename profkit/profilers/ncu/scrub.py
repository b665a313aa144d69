"""Takes what is private out of an .ncu-rep, so that Nsight Compute still opens the copy.

The headers of the blocks hold host, process, command line, working folder and environment: they are written anew, with
their lengths. In the records (kernels, sources, cubins with their line tables) paths and known secrets are replaced by
as many other bytes, so that nothing in them moves. Metrics, sections and names of kernels are not touched.

Field numbers: Nsight Compute 2025.3, extras/FileFormat/*.proto.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.profilers.ncu.blocks import Block, blocks, file_header, records
from profkit.profilers.ncu.facts import split_command
from profkit.profilers.ncu.private_header import HEADER, rewritten
from profkit.profilers.ncu.same_length import Masker
from profkit.profilers.ncu.wire import LENGTH, Buffer, Malformed, fields
from profkit.profilers.redact import COMMAND, FOLDER, HOST, PATH, Redactor


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Write a scrubbed copy of the report to `output`, which must not be there yet. Raises UnreadableReport."""
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
                    header = rewritten(data[block.header.offset : block.payload], HEADER, redactor)
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
