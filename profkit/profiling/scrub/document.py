"""run.json, and other plain data of a run, without what is private."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from profkit.core.run_folder import to_json
from profkit.core.types import RunDocument
from profkit.profilers.redact import COMMAND, FOLDER, PATH, PROCESS, Redactor


def is_sweep(run: RunDocument) -> bool:
    """Whether it is a sweep: its command is made of its axes, and is no line that somebody typed."""
    return run.workload.command[:2] == ("profkit", "sweep")


def scrub_document(run: RunDocument, redactor: Redactor) -> dict[str, Any]:
    """run.json without what is private. Names of kernels, regions and metrics stay."""
    command = () if is_sweep(run) else run.workload.command  # a grid tells of nobody
    names = names_of(run)
    for word in command:
        value = word.partition("=")[2] if word.startswith("-") else word
        if not any(value in name for name in names):
            redactor.learn(value, COMMAND)
    redactor.learn(run.workload.folder, FOLDER)
    redactor.learn(str(PurePath(run.workload.python).parent) if run.workload.python else None, PATH)
    shown = _shown(command)
    redactor.note(COMMAND, int(shown != list(command)), " ".join(shown))
    others = {
        one.name: f"process-{one.pid}" if one.pid is not None else "another process"
        for one in (run.metal.processes if run.metal is not None else ())
        if not one.target
    }
    for name in others:
        redactor.learn(name, PROCESS)
        redactor.note(PROCESS, 1, others[name])
    told = _renamed(to_json(run), others)
    document: dict[str, Any] = without(told, list(command), shown, redactor, names)
    if command:
        document["workload"]["command"] = shown
    if document.get("revision"):
        document["revision"]["branch"] = None  # people name branches after themselves
    return document


def _renamed(value: Any, others: dict[str, str]) -> Any:
    """A document in which other programs that used the GPU go by their numbers."""
    if isinstance(value, str):
        found = others.get(value)
        if found is None:
            named, _, rest = value.rpartition(" (")
            found = f"{others[named]} ({rest}" if named in others else value
        return found
    if isinstance(value, dict):
        return {key: _renamed(part, others) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, others) for part in value]
    return value


def _shown(command: tuple[str, ...]) -> list[str]:
    """`python train.py`: the program and the script, without folders and arguments."""
    if not command:
        return []
    script = next((word for word in command[1:] if re.fullmatch(r"[\w./ -]+\.(?:py|sh)", word)), None)
    return [PurePath(command[0]).name, *([PurePath(script).name] if script is not None else [])]


def names_of(run: RunDocument) -> frozenset[str]:
    """What a reader looks for by name: it stays."""
    trace = run.trace.kernels if run.trace is not None else ()
    ranges = run.trace.ranges if run.trace is not None else ()
    scopes = (
        thing.scope for group in (run.counters, run.readings, run.verdicts, run.kernels) for thing in group
    )
    return frozenset(
        name
        for name in (
            run.name,
            run.workload.name,
            *(scope.name for scope in scopes),
            *(timing.name for timing in run.timings),
            *(time.kernel.name for time in trace),
            *(found.name for found in ranges),
        )
        if name
    )


def without(
    value: Any, command: list[str], shown: list[str], redactor: Redactor, names: frozenset[str]
) -> Any:
    """Plain data without what is private; `names` stay, and `command` becomes what is `shown` of it."""

    def inside(part: Any) -> Any:
        return without(part, command, shown, redactor, names)

    if isinstance(value, str):
        return value if value in names else redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(key): inside(part) for key, part in value.items()}
    if isinstance(value, list):
        return [inside(word) for word in _instead(value, command, shown)]
    return value


def _instead(words: list[Any], command: list[str], shown: list[str]) -> list[Any]:
    """A list with the workload's command, where it stands in it, replaced by what is shown of it."""
    if command:
        for at in range(len(words) - len(command) + 1):
            if words[at : at + len(command)] == command:
                return [*words[:at], *shown, *words[at + len(command) :]]
    return words
