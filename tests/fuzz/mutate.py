"""Changes to one input, drawn by a seeded generator: of bytes, of lines, and of the values that its format has."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import random
import re
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Mutator = Callable[[bytes, random.Random], bytes]
LARGEST = 1 << 20  # bytes of an input
POOL = 400  # inputs that were read and are changed further

NUMBERS = (
    b"0", b"-1", b"1", b"1e308", b"-1e308", b"1e999", b"nan", b"inf", b"-inf", b"NaN", b"Infinity", b"1e-320", b"0x7f",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"4294967295",
    b"9" * 400, b"9" * 5000, b"0.1", b".", b"1,5", b"1_000", b"\xd9\xa3", b"\xc2\xb2", b"00", b"-0", b"1 2", b"",
)  # fmt: skip
WORDS = (
    b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b"%s%n", b"{}", b"[]", b"null", b"../../etc/passwd",
    b"/dev/zero", b"A" * 4096, b"<script>", b"=1+1", b"\r\n", b"\x1b[2J", b"\xe2\x80\xae", b"'", b'"', b"\\", b"a\x85b",
    b"[" * 3000, b"(" * 3000, b"{" * 300, b"<" * 3000, b"*" * 300, b":", b",", b"=", b" ",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, -1e308, 1e-320,
    float("nan"), float("inf"), "", "a", "nan", "1", "\0", "\ud800", "\u202e", "x" * 5000, [], {}, [[]], [None],
    {"": None}, [1, "a"], {"name": 1}, "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "../..", "/dev/zero",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w./-]*")


def mutate_bytes(data: bytes, by: random.Random) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    out = bytearray(data)
    at = by.randrange(len(out) + 1)
    end = min(len(out), at + by.choice((1, 2, 4, 8, by.randrange(1, 200))))
    match by.randrange(8):
        case 0 if at < len(out):
            out[at] ^= 1 << by.randrange(8)
        case 1:
            out[at:end] = bytes(by.randrange(256) for _ in range(end - at))
        case 2:
            del out[at:end]
        case 3:
            del out[at:]
        case 4:
            out[at:at] = out[at:end] * by.choice((1, 2, 50))
        case 5:
            width = by.choice((1, 2, 4, 8))
            number = by.choice(
                (0, 1, 0x7F, 0x80, 0xFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
            )
            out[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, by.choice(("little", "big")))
        case 6:
            out[at:at] = by.choice(WORDS)
        case _:
            other = by.randrange(len(out) + 1)
            out[at:end] = out[other : other + end - at]
    return bytes(out[:LARGEST])


def mutate_text(data: bytes, by: random.Random) -> bytes:
    """Change a number, a word or a line."""
    kind = by.randrange(10)
    if kind < 6:
        pattern, others = (_NUMBER, NUMBERS) if kind < 4 else (_WORD, WORDS)
        at = by.randrange(len(data) + 1)
        match = pattern.search(data, at) or pattern.search(data)
        if match is None:
            return mutate_bytes(data, by)
        other = by.choice(others)
        if by.random() < 0.2 and (second := pattern.search(data, by.randrange(len(data)))) is not None:
            other = second[0]
        return (data[: match.start()] + other + data[match.end() :])[:LARGEST]
    if kind == 6:
        return mutate_bytes(data, by)
    lines = data.splitlines(keepends=True) or [b""]
    at, other_line = by.randrange(len(lines)), by.randrange(len(lines))
    match by.randrange(4):
        case 0:
            del lines[at : at + by.choice((1, 1, 5))]
        case 1:
            lines.insert(at, lines[other_line])
        case 2:
            lines[at], lines[other_line] = lines[other_line], lines[at]
        case _:
            lines[at:at] = [lines[other_line]] * by.choice((2, 100))
    return b"".join(lines)[:LARGEST]


def _places(value: Any, into: list[tuple[Any, Any]]) -> None:
    left = [value]
    while left and len(into) < 20_000:
        part = left.pop()
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, inner in items:
            into.append((part, key))
            if isinstance(inner, dict | list):
                left.append(inner)


def change_value(root: Any, by: random.Random) -> Any:
    """One change of a value made of dicts and lists; it is changed in place."""
    places: list[tuple[Any, Any]] = []
    _places(root, places)
    if not places or by.random() < 0.01:
        return by.choice(VALUES)
    part, key = by.choice(places)
    match by.randrange(8):
        case 0:
            del part[key]
        case 1 if isinstance(part, dict):
            part[by.choice(("", "name", "x" * 300, "\ud800", str(key) + "s"))] = part.pop(key)
        case 1 | 2 if isinstance(part, list):
            part[key:key] = [part[key]] * by.choice((1, 3, 200))
        case 3:
            other, name = by.choice(places)
            part[key] = other[name] if not isinstance(other[name], dict | list) else by.choice(VALUES)
        case 4 if isinstance(part[key], int | float) and not isinstance(part[key], bool):
            part[key] = by.choice((-part[key], part[key] * 10**9, part[key] * 10**30, 0, str(part[key])))
        case _:
            part[key] = by.choice(VALUES)
    return root


def mutate_json(data: bytes, by: random.Random) -> bytes:
    """Change a value of a JSON text, or of one line of JSON lines; now and then its bytes."""
    if by.random() < 0.15:
        return mutate_text(data, by)
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        lines = data.splitlines(keepends=True)
        if len(lines) < 2:
            return mutate_text(data, by)
        at = by.randrange(len(lines))
        try:
            value = json.loads(lines[at])
        except (ValueError, RecursionError):
            return mutate_text(data, by)
        lines[at] = json.dumps(change_value(value, by)).encode() + b"\n"
        return b"".join(lines)[:LARGEST]
    return json.dumps(change_value(root, by)).encode()[:LARGEST]


def _mutate_inside(data: bytes, by: random.Random, *, mutator: Mutator) -> bytes:
    """Change what a gzip file holds; now and then the file itself."""
    if not data.startswith(b"\x1f\x8b"):
        return mutator(data, by)
    if by.random() < 0.2:
        return mutate_bytes(data, by)
    try:
        return gzip.compress(mutator(gzip.decompress(data), by), 1, mtime=0)
    except (OSError, EOFError, ValueError, zlib.error):
        return mutate_bytes(data, by)


mutate_packed = functools.partial(_mutate_inside, mutator=mutate_json)
mutate_packed_text = functools.partial(_mutate_inside, mutator=mutate_text)


def mutate_sqlite(data: bytes, by: random.Random) -> bytes:
    """Change a cell, a column or a table of a SQLite file; now and then its bytes."""
    if by.random() < 0.3:
        return mutate_bytes(data, by)
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
        file.write(data)
        file.flush()
        try:
            connection = sqlite3.connect(file.name, isolation_level=None)
            try:
                _change_database(connection, by)
            finally:
                connection.close()
        except (sqlite3.Error, OverflowError, UnicodeError):
            return mutate_bytes(data, by)
        return Path(file.name).read_bytes()[:LARGEST]


def _change_database(connection: sqlite3.Connection, by: random.Random) -> None:
    connection.executescript(
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF"
    )
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = by.choice(tables)
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    column = by.choice(columns)
    value = by.choice([v for v in VALUES if not isinstance(v, list | dict)] + [b"\xff\0"])
    if by.random() < 0.2:
        more = (f'DROP TABLE "{table}"', f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"')
        connection.execute(by.choice((*more, f'DELETE FROM "{table}"')))
        return
    rows = [row[0] for row in connection.execute(f'SELECT rowid FROM "{table}" LIMIT 1000')]
    if rows:
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, by.choice(rows)))


_HEAD = re.compile(rb"== ([\w.-]+(?:/[\w.-]+)?) (\d{1,9})\n")


def pack(files: dict[str, bytes]) -> bytes:
    """A folder as one input: its files behind one another, each after a line with its name and size."""
    return b"".join(b"== %s %d\n" % (name.encode(), len(body)) + body for name, body in files.items())


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of an input; what has no head before it belongs to no file, and is passed over."""
    files: dict[str, bytes] = {}
    at = 0
    while (head := _HEAD.search(data, at)) is not None:
        name = head[1].decode()
        if ".." not in name:
            files[name] = data[head.end() : head.end() + int(head[2])]
        at = max(head.end(), head.end() + len(files.get(name, b"")))
    return files


def mutate_folder(data: bytes, by: random.Random) -> bytes:
    """Change one file of a folder by its own grammar, take one away, or let two change places."""
    files = unpack(data)
    if not files or by.random() < 0.03:
        return mutate_bytes(data, by)
    name = by.choice(list(files))
    match by.randrange(20):
        case 0:
            del files[name]
        case 1:
            other = by.choice(list(files))
            files[name], files[other] = files[other], files[name]
        case _:
            mutators = {".json": mutate_json, ".jsonl": mutate_json, ".so": mutate_bytes}
            files[name] = mutators.get(Path(name).suffix, mutate_text)(files[name], by)
    return pack(files)[:LARGEST]


def several(mutator: Mutator, data: bytes, by: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One to four changes, of this input or (one in fifty) of a half of it with a half of another."""
    if by.random() < 0.02:
        other = by.choice(seeds)
        data = data[: by.randrange(len(data) + 1)] + other[by.randrange(len(other) + 1) :]
    for _ in range(by.choice((1, 1, 1, 2, 4))):
        with contextlib.suppress(RecursionError, ValueError, OverflowError):
            data = mutator(data, by)
    return data
