"""What must be alike for two runs to be compared: the fields as data, a run's fingerprint, and how two differ.

A fingerprint is what a run's document says of every field, and an id of the machine. Values are equal exactly where the
thing is. Two versions of one program lie in two folders, and often under two names: so a program goes by its last name,
and a path below the working folder or the program's own is relative to that.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.core.tables import load_yaml
from profkit.core.types import (
    Difference,
    Feature,
    Gpu,
    Machine,
    RunDocument,
    Tier,
    Timing,
    Workload,
)
from profkit.runtime.passes.shown_command import MASK, joined_words, shown_command

_SYSTEM = re.compile(r"macOS (\d+(?:\.\d+)*)")


def _metal_values(document: RunDocument) -> dict[str, str | None]:
    """Return the fields that only Instruments has, and those that only Metal has."""
    facts = document.facts
    system = _SYSTEM.match(facts.get("system", ""))
    return {
        "macos.major": system[1].partition(".")[0] if system else None,
        "macos.version": system[1] if system else None,
        "mode.template": facts.get("template"),
        "mode.induced": (facts.get("induced performance state") or "Default") if document.metal else None,
    }


NO_ARGUMENTS = "none"
# Options of the interpreter that take the next word as their value.
_WITH_VALUE = ("-W", "-X")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?")


def program_of(workload: Workload) -> str | None:
    """Return `python bench.py`, `python -m pkg.mod`, `python -c 'a()'`, `prog`: without folders. None of a bare
    report.
    """
    program, _ = _program_and_arguments(workload)
    return shlex.join(_last_name(word) for word in program) or None


def arguments_of(workload: Workload) -> str | None:
    """Return the words behind the program, with paths below its folder or the working folder relative to that.

    `NO_ARGUMENTS` where there are none; None where the command is not known.
    """
    program, arguments = _program_and_arguments(workload)
    if not program:
        return None
    script = program[-1] if os.sep in program[-1] else ""
    folders = [folder for folder in (workload.folder, os.path.dirname(script)) if os.path.isabs(folder)]
    return shlex.join(_relative_path(word, folders) for word in arguments) or NO_ARGUMENTS


def _program_and_arguments(workload: Workload) -> tuple[tuple[str, ...], tuple[str, ...]]:
    words = workload.command
    if not words or not (workload.python or _PYTHON.fullmatch(_last_name(words[0]))):
        return words[:1], words[1:]
    at = 1
    while at < len(words):
        word = words[at]
        if word in ("-m", "-c"):
            return (words[0], word, *words[at + 1 : at + 2]), words[at + 2 :]
        if not word.startswith("-"):
            return (words[0], word), words[at + 1 :]
        at += 2 if word in _WITH_VALUE else 1
    return words[:1], words[1:]


def _last_name(word: str) -> str:
    """Return a path's last name; code of `-c` and names of modules as they are."""
    return os.path.basename(word) if re.fullmatch(r"[^\s]*/[^\s/]+", word) else word


def _relative_path(word: str, folders: list[str]) -> str:
    name, equals, path = word.rpartition("=")
    for folder in folders:
        if path.startswith(folder.rstrip(os.sep) + os.sep):
            return f"{name}{equals}{os.path.relpath(path, folder)}"
    return word


GIB = 1 << 30


def values_of(document: RunDocument) -> dict[str, str]:
    """Return the fields of this document, by name."""
    machine = document.machine
    values: dict[str, str | None] = {
        **(
            _machine(machine)
            if machine is not None
            else {"machine.caches": _simulated_caches(document.facts)}
        ),
        "machine.place": document.place,
        **_gpus(document.gpus, document.facts),
        **_metal_values(document),
        **_workload(document),
        **_mode(document),
        **_versions(document),
    }
    return {name: value for name, value in values.items() if value}


def _machine(machine: Machine) -> dict[str, str | None]:
    model = f", family {machine.family} model {machine.model}" if machine.family is not None else ""
    # kB: the kernel keeps some memory for itself, another amount at each boot, so no more than GiB are the machine's
    return {
        "machine.system": machine.system,
        "machine.architecture": machine.architecture,
        "machine.cpu": f"{machine.cpu}{model}" if machine.cpu else None,
        "machine.cores": str(machine.cores),
        "machine.virtual": machine.virtual or "none",
        "machine.memory": f"{machine.memory_bytes / GIB:.0f} GiB" if machine.memory_bytes else None,
        "machine.caches": ", ".join(
            f"L{cache.level} {cache.size >> 10} KiB {cache.ways}-way" for cache in machine.caches
        ),
        "machine.governor": machine.governor,
        "machine.kernel": machine.release,
    }


def _simulated_caches(facts: Mapping[str, str]) -> str | None:
    """Return the caches that a callgrind report says it simulated: all that a bare report has of its machine."""
    levels = ("D1 cache", "LL cache", "L2 cache", "L3 cache")
    caches = [f"{name}: {value.partition(',')[0]}" for name, value in facts.items() if name in levels]
    return ", ".join(caches) or None


def _gpus(gpus: tuple[Gpu, ...], facts: Mapping[str, str]) -> dict[str, str | None]:
    driver = next((gpu.driver for gpu in gpus if gpu.driver), None) or facts.get("driver")
    return {
        "driver.major": driver.partition(".")[0] if driver else None,
        # One tool says 580.159, another 580.159.04.
        "driver.version": ".".join(driver.split(".")[:2]) if driver else None,
        "cuda.version": facts.get("CUDA"),
        "gpu.name": _distinct_values(gpu.name for gpu in gpus),
        "gpu.count": str(len(gpus)) if gpus else None,
        "gpu.multiprocessors": _distinct_values(_text(gpu.multiprocessors) for gpu in gpus),
        "gpu.cores": _distinct_values(_text(gpu.cores) for gpu in gpus),
        "gpu.mig": _distinct_values({True: "on", False: "off", None: None}[gpu.mig] for gpu in gpus),
        "gpu.virtual": _distinct_values(gpu.virtual for gpu in gpus),
        "gpu.power_limit": _distinct_values(
            f"{gpu.power_limit:.0f} W" if gpu.power_limit else None for gpu in gpus
        ),
        "gpu.clock_lock": _distinct_values(
            f"{gpu.clock_lock / 1e6:.0f} MHz" if gpu.clock_lock else None for gpu in gpus
        ),
    }


def _workload(document: RunDocument) -> dict[str, str | None]:
    workload = document.workload
    work = [
        f"{timing.name}: {', '.join(_declared_work(timing))}"
        for timing in document.timings
        if _declared_work(timing)
    ]
    return {
        "workload.arguments": arguments_of(workload),
        "workload.program": program_of(workload),
        "workload.work": "; ".join(sorted(work)),
        "workload.regions": ", ".join(_regions(document)),
    }


def _regions(document: RunDocument) -> list[str]:
    """Return what was timed by name; the cases of a sweep, which are thousands, as so many of each group."""
    cases = Counter(timing.group for timing in document.timings if timing.group is not None)
    alone = [timing.name for timing in document.timings if timing.group is None]
    return sorted([*alone, *(f"{group} ({count})" for group, count in cases.items())])


def _declared_work(timing: Timing) -> list[str]:
    work = (("FLOP", timing.flops), ("bytes", timing.bytes))
    return [f"{value:.6g} {name}" for name, value in work if value is not None]


def _mode(document: RunDocument) -> dict[str, str | None]:
    samples = [process for timing in document.timings for process in timing.processes]
    facts, trace = document.facts, document.trace
    return {
        "mode.backend": document.backend,
        "mode.format": None
        if document.passes or document.timings
        else ", ".join(sorted(_measuring_tools(document))),
        "mode.state": document.state,
        "mode.cache": facts.get("cache before each call"),
        "mode.clock": _distinct_values(process.clock for process in samples),
        "mode.timed": _distinct_values(timing.kind for timing in document.timings),
        "mode.marked": None if trace is None else "a region" if trace.marked else "the program",
        "mode.cache_control": facts.get("cache control"),
        "mode.replay": facts.get("replay"),
        "mode.clock_control": facts.get("clock control") or facts.get("clocks"),
    }


def _measuring_tools(document: RunDocument) -> set[str]:
    """Return the tools that a report without a run comes from."""
    tools = {reading.source.tool for reading in document.readings} | set(document.tools)
    if document.trace is not None:
        tools.add(document.trace.tool)
    return tools - {"profkit"}


def _versions(document: RunDocument) -> dict[str, str | None]:
    """Return the major versions of the tools that have a field of their own, all versions, and those of packages."""
    tools, packages = document.tools, document.packages
    values: dict[str, str | None] = {}
    for field in all_fields():
        kind, _, name = field.partition(".")
        if kind == "tool":
            values[field] = tools.get(name, "").partition(".")[0]
        elif kind == "software":
            values[field] = packages.get(name)
    values["tool.versions"] = ", ".join(f"{name} {tools[name]}" for name in sorted(tools) if tools[name])
    return values


def _distinct_values(values: Iterator[str | None] | tuple[str | None, ...]) -> str | None:
    """Return the one value of all, or the different ones in order; None if there is none."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


ID_LENGTH = 12  # hexadecimal digits: two of a thousand machines share one in 1 of 500 million fleets


def fingerprint_of(document: RunDocument) -> tuple[Feature, ...]:
    """Return what `document` says of every field; a field that it says nothing of has the value None.

    Works on a run of any age, an unfinished one, and a report of any tool. Nothing in it names the machine, its user
    or a folder.
    """
    values = values_of(document)
    return tuple(Feature(name, values.get(name), field.tier) for name, field in all_fields().items())


def fingerprint_id(features: tuple[Feature, ...]) -> str:
    """Return the id of the machine's fields that must be alike; a field that the run does not have is left out."""
    fields = all_fields()
    words = [
        f"{feature.name}={feature.value}"
        for feature in features
        if feature.value is not None and feature.tier == "must" and fields[feature.name].of == "machine"
    ]
    return hashlib.sha256("\n".join(words).encode("utf-8", "replace")).hexdigest()[:ID_LENGTH]


# What a field is of; see the head of fields.yaml.
Owner = Literal["machine", "workload", "mode", "tool", "software"]


@dataclass(frozen=True)
class ComparedField:
    """One field: how much it weighs, what it is of, and why."""

    name: str
    tier: Tier
    of: Owner
    title: str
    why: str


@lru_cache(maxsize=1)
def all_fields() -> Mapping[str, ComparedField]:
    """Return every field by its name, in the order of the file."""
    rows = load_yaml(Path(__file__).with_name("fields.yaml"))
    return {name: ComparedField(name, **row) for name, row in rows.items()}


_WEIGHT: dict[Tier, int] = {"must": 0, "should": 1}


def fingerprint_differences(
    baseline: tuple[Feature, ...], candidate: tuple[Feature, ...]
) -> tuple[Difference, ...]:
    """Return every field in which they differ, the weightiest first.

    A `must` field that only one of the two has is no difference but a doubt: it comes as `should`, and says so. So
    are arguments that may differ only in what is masked. What neither has, and what a later profkit added, is passed
    over. The command is given without its secrets.
    """
    fields = all_fields()
    before, after = _values(baseline), _values(candidate)
    shown = [_values(shown_features(side)) for side in (baseline, candidate)]
    differences = []
    for name, field in fields.items():
        old, new = before.get(name), after.get(name)
        doubted = (
            name in _OF_COMMAND and MASK in f"{old} {new}" and _bare(shown[0][name]) == _bare(shown[1][name])
        )
        if old != new or doubted:
            tier: Tier = "should" if doubted or None in (old, new) else field.tier
            differences.append(Difference(name, tier, shown[0].get(name), shown[1].get(name)))
    return tuple(sorted(differences, key=lambda difference: _WEIGHT[difference.tier]))


def shown_features(features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Return the fields as others may see them: of the command what is known to be harmless, else a mask."""
    values = _values(features)
    program, arguments = (_words(values.get(name) or "") for name in _OF_COMMAND)
    if values.get(_OF_COMMAND[1]) == NO_ARGUMENTS:
        arguments = []
    words = shown_command((*program, *arguments)).words
    for name, part in zip(_OF_COMMAND, (words[: len(program)], words[len(program) :]), strict=True):
        if part:
            values[name] = joined_words(part)
    return tuple(Feature(feature.name, values[feature.name], feature.tier) for feature in features)


_OF_COMMAND = ("workload.program", "workload.arguments")


def _values(features: tuple[Feature, ...]) -> dict[str, str | None]:
    return {feature.name: feature.value for feature in features}


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # of a file that another program wrote
        return [MASK]


def _bare(words: str | None) -> list[str]:
    """Return the words, of paths the last name: one out of the folder has lost the others with its mask."""
    return [re.sub(r"[^=\s]*/(?=[^/])", "", word) for word in shlex.split(words or "")]
