"""Run one process of a version: how long it took, by its own marks or as a whole, and what it used.

The first run of both is not counted: it checks whether they run at all, and whether each runs its own code.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from profkit.core.errors import Progress, UsageError, WorkloadError
from profkit.core.files.regular import read_bounded
from profkit.profiling.plain_run import OneRun, PlainProcess, RunOptions, variation
from profkit.profiling.time_limits import plain_time_limit
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.same_code import Loaded, equal_files
from profkit.runtime.passes.command import START_FOLDER, is_machine_code, start_up_environment

_QUICK = 0.2  # seconds of sampling where nothing is timed
_INSTALLS = "python -m venv .venv && .venv/bin/pip install -e ."
SETUP = f"--setup '{_INSTALLS}' -- .venv/bin/python ..."
SPARE = 1.5  # times the four pairs that decide nothing but a large change


def run_once(
    version: Version,
    options: RunOptions,
    folder: Path,
    draw: random.Random,
    tick: Callable[[float], None] | None = None,
    hash_seed: int = 0,
) -> OneRun:
    """Run and time one process of `version`; its log and records lie in `folder`, which is made anew.

    Raises WorkloadError if it fails, UsageError if it cannot be started.
    """
    env = {**version.environment(), **variation(draw, hash_seed)}
    run = PlainProcess(version.name, version.command, version.cwd, env, folder, options, given=version.given)
    return run.time(tick)


def loaded_files(
    version: Version, options: RunOptions, folder: Path, tick: Callable[[float], None] | None = None
) -> Loaded:
    """Run a version once to fill caches (byte code, files on disk), and return what its Python processes loaded.

    Also what they read. Empty if it runs no Python that can be observed. Raises what `run_once` raises.
    """
    names = folder / "loaded"
    environment, _ = start_up_environment(version.command, "loaded-files", names)
    extra = dict(environment or {})
    own = version.environment().get("PYTHONPATH")
    if extra and own is not None:
        extra["PYTHONPATH"] = os.pathsep.join((str(START_FOLDER), own))
    env = {**version.environment(), **extra}
    quick = replace(options, sampling=min(_QUICK, options.sampling))
    run = PlainProcess(
        version.name, version.command, version.cwd, env, folder, quick, inside=names, given=version.given
    )
    run.run(tick)
    return Loaded.of_lines([line for path in sorted(names.glob("*.txt"))[:64] for line in _read_lines(path)])


def _read_lines(path: Path) -> list[str]:
    try:
        return read_bounded(path).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


# ---------------------------------------------------------------- the first runs


def warm_up(
    first: Version,
    second: Version,
    options: RunOptions,
    folder: Path,
    progress: Progress,
    setup: Sequence[str] = (),
) -> int | None:
    """Run both once without counting it, and check that each runs its own code.

    Returns the number of files that they load and read if all of these are equal in both, so that there is
    nothing to compare; else None. `setup` is what made the checkouts ready. Raises UsageError if a version runs
    code of the other, or of the working tree that it was checked out from; WorkloadError if one fails.
    """
    _refuse_one_program(first, second, setup)
    both = (first, second)
    old, new = _first_runs(both, options, folder / "first", progress)
    if first.root is None or second.root is None:
        return None
    for version, loaded in zip(both, (old, new), strict=True):
        _refuse_foreign_code(version, loaded.modules, both)
    return equal_files(both, (old, new))


def _first_runs(
    both: tuple[Version, Version], options: RunOptions, folder: Path, progress: Progress
) -> tuple[Loaded, Loaded]:
    """Return what each version loads and reads; the baseline's time limits the candidate's."""
    first, second = both
    began = time.monotonic()
    try:
        old = loaded_files(first, options, folder, progress.tick)
    except WorkloadError:
        loaded_files(second, options, folder, progress.tick)  # what fails in both is no fault of the baseline
        raise
    limit = plain_time_limit(time.monotonic() - began, options.timeout, None)
    return old, loaded_files(second, replace(options, timeout=limit), folder, progress.tick)


# ---------------------------------------------------------------- whose code runs


def _refuse_one_program(first: Version, second: Version, setup: Sequence[str]) -> None:
    """Raise UsageError if both would run the same program that was built in the repository."""
    roots = _roots((first, second))
    programs = [os.path.realpath(version.cwd / version.command[0]) for version in (first, second)]
    if os.sep not in first.command[0] or programs[0] != programs[1] or first.root == second.root:
        return
    if any(_is_code_of(root, programs[0]) for root in roots) and is_machine_code((programs[0],)):
        built = f", and the setup command built none in the checkout of {first.name}" if setup else ""
        raise UsageError(
            f"both versions would run the same program, {programs[0]}: it is in no commit{built}",
            "--setup make",
        )


def _refuse_foreign_code(version: Version, files: frozenset[str], both: Sequence[Version]) -> None:
    """Raise UsageError if `version` loaded code of the repository that is not in its own folder.

    Files of the command line are allowed: a script that is in no commit is the same for both on purpose.
    """
    assert version.root is not None
    named = _named(version)
    for root in _roots(both) - {version.root}:
        stray = sorted(
            path
            for path in files
            if _is_code_of(root, path)
            and not Path(path).is_relative_to(version.root)
            and os.path.realpath(path) not in named
        )
        if not stray:
            continue
        file = Path(stray[0])
        owner = next((v.name for v in both if v.root == root), f"the working tree ({root})")
        raise UsageError(
            f"{version.name} runs the code of {owner}: it loads {file.relative_to(root)} from there, "
            "so nothing is compared",
            SETUP,
        )


def _named(version: Version) -> frozenset[str]:
    """Return the files that the words of its command are, or would be: its script is no module."""
    return frozenset(os.path.realpath(version.cwd / word) for word in version.command if "\0" not in word)


def _roots(both: Sequence[Version]) -> set[Path]:
    """Return all folders with code of this repository: the versions' own, and where they were checked out from."""
    return {path for version in both for path in (version.root, version.repository) if path is not None}


def _is_code_of(root: Path, path: str) -> bool:
    """Return whether a file belongs to the code in `root`: an environment that lies there does not."""
    file = Path(path)
    if not file.is_relative_to(root):
        return False
    inside = file.relative_to(root).parts
    if "site-packages" in inside or "dist-packages" in inside:
        return False
    folders = [root.joinpath(*inside[:depth]) for depth in range(1, len(inside))]
    return not any((folder / "pyvenv.cfg").is_file() for folder in folders)
