"""Builds ncu's command line, the only place with its flags, and the counter sets by depth.

A set is known with the replay passes that it takes on a chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.tables import load_yaml
from profkit.core.types import Fact, KernelPlan

SUFFIX = ".ncu-rep"

# Other profilers get into the workload in the same way, and the two do not start together.
_INJECTORS = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "KINETO_USE_DAEMON")
# One argument may hold 128 KiB on Linux (MAX_ARG_STRLEN); longer filters name functions without their arguments.
_LONGEST_FILTER = 100_000
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}])")
# First version of options that came later than 2022.4; an older ncu refuses what it does not know.
_SINCE = {"--import-sass": (2024, 3), "--config-file": (2023, 1)}


def ncu_argv(
    command: Sequence[str],
    report: Path | str,
    *,
    metrics: Sequence[str],
    sections: Sequence[str] = (),
    kernels: Sequence[KernelPlan] = (),
    only: str | None = None,
    marked: bool,
    ncu: str = "ncu",
    version: str | None = None,
    window: tuple[int, int] | None = None,
    code: bool = False,
) -> tuple[str, ...]:
    """Return the command that counts each of `kernels` at its planned launch, once each, into `report`.

    `metrics` and `sections` are counted. `command` is the workload itself, and ncu ends with its exit code. No
    wrapper may stand between the two: of a GPU program that a shell starts every launch takes several times as
    long (a run of 20 s took over 50 s, H100, ncu 2025.3.1), so a workload that is started by `bash` or `uv run`
    is counted slowly. Without `kernels` every launch configuration is counted at its first launch, with `only`
    those of the kernels whose demangled name contains that text (or which `regex:...` finds). A planned kernel's
    `launch` is counted from 0 among the launches of its configuration: from the region's begin where `marked`,
    else from the program's. ncu has one such number for all kernels of a call; raises ValueError for plans that
    differ.

    Which launches: the name is compared whole, by the mangled name where all plans have it; skip and count hold
    for each name, grid, block and dynamic shared memory on its own, over all processes (H200, ncu 2025.3.1). ncu
    has no filter for grids, so other configurations of a named kernel are counted once as well.

    A launch that is matched and not counted costs 10 ms, and the count of each configuration is never done. With
    `window` (how many launches to pass over, and how many to count, of all that match the names of `kernels`) ncu
    is done after it, and the program runs on freely. All launches in it are counted; the plans' own numbers do
    not matter.

    The clocks are left alone, unlike by ncu's default, which locks them; the caches are emptied before each
    replay, as by its default. `version` is that of ncu; options that it is too old for are left out. With `code`
    the machine code of the kernels, with its lines, goes into the report; of a library it is the whole, 30 MB of
    cuBLAS.
    """
    argv = ["env", *(part for name in _INJECTORS for part in ("-u", name)), ncu]
    argv += _if_known(version, "--config-file", "off")
    argv += ["--target-processes", "all"]
    if marked:
        argv += ["--profile-from-start", "off"]
    argv += ["--replay-mode", "kernel", "--cache-control", "all", "--clock-control", "none"]
    argv += _window_options(kernels, window) if window is not None else _per_launch_options(kernels, only)
    for section in sections:
        argv += ["--section", section]
    if metrics:
        argv += ["--metrics", ",".join(metrics)]
    argv += _if_known(version, "--import-sass", "yes" if code else "no")
    argv += ["--apply-rules", "no", "--force-overwrite", "--export", str(report).replace("%", "%%")]
    return (*argv, *command)


def name_filter(kernels: Sequence[KernelPlan]) -> tuple[str, str]:
    """Return the name base and the filter (`regex:...`) that fit all of these kernels and few others.

    By mangled names where all are known: those are the same for every tool. Demangled ones differ in blanks and
    casts (`transpose<1>`, `transpose<(int)1>`), so of these only the function's own name is compared, to which
    any template arguments may belong.
    """
    mangled = [plan.kernel.mangled for plan in kernels]
    if all(mangled):
        text = _any_of(_escaped(name) for name in mangled if name)
        if len(text) <= _LONGEST_FILTER:
            return "mangled", f"regex:^({text})$"
    return "demangled", _functions(function_name(plan.kernel.name) for plan in kernels)


def function_name(demangled: str) -> str:
    """Return the bare function name of a demangled signature.

    It has no return type, namespaces, templates or parameters.
    """
    depth, end = 0, len(demangled)
    begin = 0
    for place, char in enumerate(demangled):
        if char in "<(":
            if depth == 0 and place > begin and not _opens_namespace(demangled, place):
                end = place
                break
            depth += 1
        elif char in ">)":
            depth = max(0, depth - 1)
        elif char in " :" and depth == 0:
            begin = place + 1
    return demangled[begin:end] or demangled


def _opens_namespace(demangled: str, place: int) -> bool:
    """Return whether `::` follows the brackets at `place`, which then belong to a scope, not the function."""
    depth = 0
    for at in range(place, len(demangled)):
        depth += (demangled[at] in "<(") - (demangled[at] in ">)")
        if depth == 0:
            return demangled.startswith("::", at + 1)
    return False


def _per_launch_options(kernels: Sequence[KernelPlan], only: str | None) -> list[str]:
    launches = {plan.launch or 0 for plan in kernels}
    if len(launches) > 1:
        raise ValueError(f"one call of ncu has one launch number for all kernels, not {sorted(launches)}")
    argv = ["--filter-mode", "per-launch-config", "--launch-skip", str(max(launches, default=0))]
    argv += ["--launch-count", "1"]
    if only is not None:
        return ["--kernel-name-base", "demangled", "--kernel-name", _kernel_pattern(only), *argv]
    if (
        not kernels
    ):  # the base is part of what tells configurations apart: instances of a template share its name
        return ["--kernel-name-base", "mangled", *argv]
    base, names = name_filter(kernels)
    return ["--kernel-name-base", base, "--kernel-name", names, *argv]


def _kernel_pattern(name: str) -> str:
    return name if name.startswith("regex:") else f"regex:{_escaped(name)}"


def _functions(names: Iterable[str]) -> str:
    """Return a filter for demangled names: these functions in any namespace, with any templates and parameters."""
    return f"regex:(^|[ :>*&])({_any_of(map(_escaped, names))})([<(]|$)"


def _window_options(kernels: Sequence[KernelPlan], window: tuple[int, int]) -> list[str]:
    base, names = name_filter(kernels)
    argv = ["--kernel-name-base", base, "--kernel-name", names, "--filter-mode", "global"]
    return [*argv, "--launch-skip", str(window[0]), "--launch-count", str(window[1])]


def _any_of(names: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(names))


def _escaped(name: str) -> str:
    """Return `name` as a regular expression of ECMAScript that fits nothing else."""
    return _SPECIAL.sub(r"\\\1", name)


def _if_known(version: str | None, option: str, value: str) -> list[str]:
    numbers = version_numbers(version)
    return [option, value] if numbers is None or numbers >= _SINCE[option] else []


def version_numbers(version: str | None) -> tuple[int, ...] | None:
    """Parse "2025.3.1.0" into `(2025, 3, 1, 0)`; None where it does not begin with numbers."""
    match = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(int(part) for part in match[0].split(".")) if match else None


@lru_cache(maxsize=1)
def _chip_numbers() -> Mapping[int, str]:
    numbers: Mapping[int, str] = load_yaml(Path(__file__).with_name("chip_numbers.yaml"))
    return numbers


def chip_name(number: int | None) -> str | None:
    """Return the name of a chip by its number, `GH100` for 384; None for a chip that is not in the list."""
    return None if number is None else _chip_numbers().get(number)


# What no chip of a personal computer or server lacks, and one with its memory on the system's chip does.
_DISCRETE = "dram__"


@dataclass(frozen=True)
class ChipTable:
    """`passes[chip][set]`, `capabilities[chip]` and, by base name of a metric, the chips that lack it."""

    passes: Mapping[str, Mapping[str, int]]
    capabilities: Mapping[str, str]
    lacks: Mapping[str, frozenset[str]]


@lru_cache(maxsize=1)
def chip_table() -> ChipTable:
    """Load the table of chips, once per process."""
    content = load_yaml(Path(__file__).with_name("chips.yaml"))
    return ChipTable(
        passes={name: row["passes"] for name, row in content["chips"].items()},
        capabilities={
            name: row["capability"] for name, row in content["chips"].items() if "capability" in row
        },
        lacks={base: frozenset(chips) for base, chips in content["lacks"].items()}
        | {base: frozenset(content["chips"].keys() - set(chips)) for base, chips in content["only"].items()},
    )


def find_chip(name: str | None) -> str | None:
    """Return the chip called `name`, or the first of that compute capability ("8.6", "10.1"); else None."""
    if name is None:
        return None
    if name.upper() in chip_table().passes:
        return name.upper()
    capability = "11.0" if name == "10.1" else name  # Thor, before CUDA 13 renamed it
    return next((chip for chip, its in chip_table().capabilities.items() if its == capability), None)


def has_metric(chip: str | None, metric: str) -> bool:
    """Return whether `chip` has `metric` (full or base name).

    Of an unknown chip, whether every chip with its own memory has it.
    """
    lacking = chip_table().lacks.get(metric.partition(".")[0], frozenset())
    if chip is not None:
        return chip not in lacking
    return not lacking or (
        metric.startswith(_DISCRETE) and all(not has_metric(c, "dram__bytes") for c in lacking)
    )


def planned_passes(chip: str | None, name: str) -> int | None:
    """Return the replay passes that NVIDIA's library plans for the set `name`; None for an unknown chip."""
    return chip_table().passes.get(chip, {}).get(name) if chip is not None else None


# Passes that ncu takes beyond those that NVIDIA's library plans. Where there are several, one more: so in seven
# recorded reports of four GPUs, and on an H200 for these sets (ncu 2025.3.1: 1, 5 and 9 passes, as computed here).
# A section that samples takes two of its own; the patching of its instructions is in the plan of a set that patches
# them anyway.
_MORE = 1
_SECTION_PASSES = 2


@dataclass(frozen=True)
class CounterSet:
    """What ncu counts: metrics by name, and whole sections.

    `replays` is the expected number of passes; None for an unknown chip.
    """

    name: str
    metrics: tuple[str, ...]
    replays: int | None
    note: Fact
    sections: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def counter_set(depth_name: str, chip: str | None, version: str | None = None) -> CounterSet:
    """Return the set `depth_name` (gate, standard, explain) for a chip ("GH100") or a capability ("9.0").

    `version` is that of ncu: metrics that came later are left out for an old one.

    Metrics that the chip lacks are left out: ncu refuses a kernel for one name that it does not know. Of a chip
    that is not in the table only what every chip has is counted, and its replays are not known. Raises KeyError
    for an unknown set.
    """
    known_chip = find_chip(chip)
    metrics: list[str] = []
    for names in metric_alternatives(depth_name, known_chip, version):
        metrics += [name for name in names if has_metric(known_chip, name)][:1]
    sections = tuple(_load_sets()[depth_name].get("sections", ()))
    replays = _expected_replays(depth_name, known_chip, sections)
    return CounterSet(
        depth_name, tuple(metrics), replays, _note(depth_name, known_chip, chip, replays), sections
    )


def metric_alternatives(
    depth_name: str, chip: str | None = None, version: str | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the metrics of a set in order, each with all of its names.

    Without those that are excluded on `chip`, and those that ncu `version` does not know yet.
    """
    described = _load_sets()[depth_name]
    alternatives = list(metric_alternatives(described["with"], chip, version)) if "with" in described else []
    numbers = version_numbers(version)
    for entry in described["metrics"]:
        row: Mapping[str, Any] = entry if isinstance(entry, dict) else {"name": entry}
        too_old = numbers is not None and numbers < (version_numbers(row.get("since")) or ())
        if chip not in row.get("not_on", {}).get("chips", ()) and not too_old:
            alternatives.append(tuple(name.strip() for name in row["name"].split("|")))
    return tuple(alternatives)


def _expected_replays(depth_name: str, chip: str | None, sections: tuple[str, ...]) -> int | None:
    planned = planned_passes(chip, depth_name)
    if planned is None:
        return None
    return planned + (_MORE if planned > 1 else 0) + _SECTION_PASSES * len(sections)


def _note(depth_name: str, known: str | None, chip: str | None, replays: int | None) -> Fact:
    says = Fact(f"counter-set-{depth_name}")
    if replays is None:
        return Fact.of("unknown-replays", says, chip=chip or "this chip")
    return Fact.of("one-replay" if replays == 1 else "replays", says, count=replays, chip=str(known))


@lru_cache(maxsize=1)
def _load_sets() -> Mapping[str, Mapping[str, Any]]:
    content: Mapping[str, Mapping[str, Any]] = load_yaml(Path(__file__).with_name("sets.yaml"))
    return content
