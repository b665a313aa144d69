"""Lines of JSON that several processes add to one file, each in one write; the json module would load more."""

from __future__ import annotations

import os


def json_text(value: object) -> str:
    """What is written here as JSON: dicts with plain keys, lists, numbers, and text without anything but ASCII."""
    if isinstance(value, str):
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
        return f'"{text if plain else "".join(map(_escaped, text))}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {json_text(part)}' for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _escaped(sign: str) -> str:
    if sign.isascii() and sign.isprintable() and sign not in '"\\':
        return sign
    code = ord(sign)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


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
