"""Text of JSON for a file that several processes add to; the json module would load more."""

from __future__ import annotations

try:  # to import json costs a process 3 ms
    from _json import encode_basestring_ascii
except ImportError:  # PyPy
    from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii

LOST = "profkit: the result of this pass is lost: {}"  # a process of the workload says so, on standard error
_NUMBERS = frozenset({int, float})


def json_text(value: object) -> str:
    """Return what is written here as JSON: dicts with plain keys, lists, numbers, and text."""
    if isinstance(value, str):
        return encode_basestring_ascii(value.encode("utf-8", "replace").decode())
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {json_text(part)}' for key, part in value.items()) + "}"
    if type(value) is list and _NUMBERS.issuperset(map(type, value)):  # most of what is written
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)
