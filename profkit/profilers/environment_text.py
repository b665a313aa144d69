"""The variables of an environment in the forms in which tools write it down: lines, JSON, lists of either."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable


def variables(text: str) -> Iterable[tuple[str, str]]:
    """The names and values of an environment however it is written down."""
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    except RecursionError:
        return
    if isinstance(told, dict):
        for name, value in told.items():
            if isinstance(value, str):
                yield str(name), value
            elif isinstance(value, (list, dict)):
                yield from variables(json.dumps(value))
        return
    if isinstance(told, list):
        for entry in told:
            if isinstance(entry, str):
                yield from variables(entry)
            elif isinstance(entry, dict):
                yield from variables(json.dumps(entry))
        return
    for line in re.split(r"[\n\x00]|(?<=[^=]);(?=[A-Za-z_]\w*=)", text):
        name, mark, value = line.strip().partition("=")
        if mark and re.fullmatch(r"[A-Za-z_]\w*", name):
            yield name, value.strip("\"'")
