"""A folder as one input: its files behind one another, each after a line with its name and size."""

from __future__ import annotations

import re
from pathlib import Path

_HEAD = re.compile(rb"== ([\w.-]+(?:/[\w.-]+)?) (\d{1,9})\n")


def pack(files: dict[str, bytes]) -> bytes:
    """The files as one input."""
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


def write(data: bytes, folder: Path) -> None:
    """Make the folder that an input stands for."""
    folder.mkdir()
    for name, body in unpack(data).items():
        path = folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(body)
        except OSError:  # a file where another one has its folder
            continue
