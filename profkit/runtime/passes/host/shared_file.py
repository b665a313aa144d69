"""Lines of JSON that several processes add to one file, each in one write; the json module would load more."""

from __future__ import annotations

import os

try:  # to import json costs a process 3 ms
    from _json import encode_basestring_ascii
except ImportError:  # PyPy
    from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii


def json_text(value: object) -> str:
    """What is written here as JSON: dicts with plain keys, lists, numbers, and text."""
    if isinstance(value, str):
        return encode_basestring_ascii(value.encode("utf-8", "replace").decode())
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {json_text(part)}' for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def append(path: str, data: bytes) -> bool:
    """Add to a file in one write: the workload may close every descriptor that it knows nothing of, so none is kept."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            return os.write(file, data) == len(data)
        finally:
            os.close(file)
    except OSError:
        return False
