"""Takes folders out of a cProfile file: its keys are (file, line, function)."""

from __future__ import annotations

import marshal
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.profilers.cprofile.marshal_reader import NotPlainData, loads
from profkit.profilers.redact import Redactor


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Write the profile with other folders to `output`, which must not be there yet. Raises UnreadableReport."""
    try:
        told = loads(source.read_bytes())
        if not isinstance(told, dict):
            raise NotPlainData("it is no table")
        changed = {_key(key, redactor): _entry(value, redactor) for key, value in told.items()}
        if len(changed) != len(told):
            raise NotPlainData("two functions would become one")
    except (NotPlainData, ValueError, TypeError) as error:
        raise UnreadableReport(f"{source} is damaged, so nothing can be taken out of it: {error}") from error
    with output.open("xb") as file:
        marshal.dump(changed, file)


def _key(key: object, redactor: Redactor) -> object:
    if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str) and isinstance(key[2], str):
        return (redactor.text(key[0]), key[1], redactor.text(key[2]))
    return key


def _entry(value: object, redactor: Redactor) -> object:
    """Calls, times, and the callers, which are keys of the same kind."""
    if isinstance(value, tuple) and value and isinstance(value[-1], dict):
        callers = {_key(key, redactor): told for key, told in value[-1].items()}
        return (*value[:-1], callers)
    return value
