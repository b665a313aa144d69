"""How ncu is called. The one place with its flags. Pure: nothing here runs or reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from profkit.core.types import KernelPlan

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
) -> tuple[str, ...]:
    """Count `metrics` and `sections` for the planned launch of each of `kernels`, once each, into `report`.

    `command` is the workload itself, and ncu ends with its exit code. No wrapper may stand between the two: of a GPU
    program that a shell starts every launch takes several times as long (a run of 20 s took over 50 s, H100, ncu
    2025.3.1), so a workload that is started by `bash` or `uv run` is counted slowly.
    Without `kernels` every launch configuration is counted at its first launch, with `only` those of the kernels in
    whose demangled name that stands (or which `regex:...` finds). A planned kernel's `launch` is counted
    from 0 among the launches of its configuration: from the region's begin where `marked`, else from the program's.
    ncu has one such number for all kernels of a call; plans that differ are a mistake (ValueError).

    Which launches: the name is compared whole, by the mangled name where all plans have it; skip and count hold for
    each name, grid, block and dynamic shared memory on its own, over all processes (H200, ncu 2025.3.1). ncu has no
    filter for grids, so other configurations of a named kernel are counted once as well.

    A launch that is matched and not counted costs 10 ms, and the count of each configuration is never done. With
    `window` (how many launches to pass over, and how many to count, of all that match the names of `kernels`) ncu is
    done after it, and the program runs on freely. All launches in it are counted; the plans' own numbers do not matter.

    The clocks are left alone, unlike by ncu's default, which locks them; the caches are emptied before each replay, as
    by its default. `version` is that of ncu; options it is too old for are left out.
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
    # A library's whole code in each report: 30 MB where cuBLAS is used.
    argv += _if_known(version, "--import-sass", "no")
    argv += ["--apply-rules", "no", "--force-overwrite", "--export", str(report).replace("%", "%%")]
    return (*argv, *command)


def name_filter(kernels: Sequence[KernelPlan]) -> tuple[str, str]:
    """The name base and the filter (`regex:...`) that fit all of these kernels and as few others as can be.

    By mangled names where all are known: those are the same for every tool. Demangled ones differ in blanks and casts
    (`transpose<1>`, `transpose<(int)1>`), so of these only the function's own name is compared, to which any template
    arguments may belong.
    """
    mangled = [plan.kernel.mangled for plan in kernels]
    if all(mangled):
        text = _any_of(_escaped(name) for name in mangled if name)
        if len(text) <= _LONGEST_FILTER:
            return "mangled", f"regex:^({text})$"
    return "demangled", _functions(function_name(plan.kernel.name) for plan in kernels)


def function_name(demangled: str) -> str:
    """The function's own name out of a demangled signature: no return type, namespaces, templates or parameters."""
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
    """Whether the brackets at `place` are followed by `::`, and so belong to a scope and not to the function."""
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
    """A filter on demangled names: functions of these names, whatever their namespaces, templates and parameters."""
    return f"regex:(^|[ :>*&])({_any_of(map(_escaped, names))})([<(]|$)"


def _window_options(kernels: Sequence[KernelPlan], window: tuple[int, int]) -> list[str]:
    base, names = name_filter(kernels)
    argv = ["--kernel-name-base", base, "--kernel-name", names, "--filter-mode", "global"]
    return [*argv, "--launch-skip", str(window[0]), "--launch-count", str(window[1])]


def _any_of(names: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(names))


def _escaped(name: str) -> str:
    """`name` as a regular expression of ECMAScript that fits nothing else."""
    return _SPECIAL.sub(r"\\\1", name)


def _if_known(version: str | None, option: str, value: str) -> list[str]:
    numbers = version_numbers(version)
    return [option, value] if numbers is None or numbers >= _SINCE[option] else []


def version_numbers(version: str | None) -> tuple[int, ...] | None:
    """`(2025, 3, 1)` of "2025.3.1.0"; None where it does not begin with numbers."""
    found = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(int(part) for part in found[0].split(".")) if found else None
