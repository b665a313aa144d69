"""The first run of both versions, which is not counted: do they run at all, and does each run its own code?"""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import OptionFix, ProfkitError, UsageError, WorkloadError
from profkit.core.progress import Progress
from profkit.core.types import Fact
from profkit.regression.paired.changed_lines import IN_BRACES
from profkit.regression.paired.decide import FIRST_ROUNDS
from profkit.regression.paired.git import changed_files
from profkit.regression.paired.interleave import PairedOptions
from profkit.regression.paired.one_run import NOT_INSTALLED, loaded_files
from profkit.regression.paired.version import Version
from profkit.reporting.views.comparison.words import fact_text
from profkit.runtime.passes.command import find_interpreter, is_machine_code, loaded_files_environment

_INSTALLS = "python -m venv .venv && .venv/bin/pip install -e ."
SETUP = OptionFix("--setup", _INSTALLS, f"--setup '{_INSTALLS}' -- .venv/bin/python ...")
SPARE = 1.5  # times the four pairs that decide nothing but a large change


def warm_up(
    first: Version,
    second: Version,
    options: PairedOptions,
    folder: Path,
    progress: Progress,
    setup: Sequence[str] = (),
) -> list[Fact]:
    """Run both once without counting it, and see that each runs its own code; what is to be noted.

    `setup` is what made the checkouts ready.
    Raises UsageError where a version runs code of the other, or of the working tree that it was checked out from;
    WorkloadError where one fails.
    """
    _refuse_one_program(first, second, setup)
    began = time.monotonic()
    loaded = _run_both(first, second, options, folder, progress)
    _warn_of_budget(time.monotonic() - began, options, progress)
    if first.root is None or second.root is None:
        return []
    for version, files in zip((first, second), loaded, strict=True):
        _refuse_foreign_code(version, files, (first, second))
    if (unseen := _cannot_be_asked(first)) is not None:
        return [unseen]
    changed = changed_files(second.root, first.commit, second.commit if not second.dirty else None)
    if (old := _built_before(second, changed)) is not None:
        progress.note(f"warning: {fact_text(old)}")
        return [old]
    python = [path for path in changed if path.endswith(".py")]
    if not any(loaded) or not python or len(python) < len(changed):
        return []
    used = {str(version.root / path) for version in (first, second) if version.root for path in python}
    if used & (loaded[0] | loaded[1] | _named(first) | _named(second)):
        return []
    return [Fact.of("nothing-loaded", files=", ".join(python[:3]))]


def _run_both(
    first: Version, second: Version, options: PairedOptions, folder: Path, progress: Progress
) -> list[frozenset[str]]:
    """The files that each loads. A fault of both is said once: it is no difference between them."""
    loaded: list[frozenset[str]] = []
    faults: list[tuple[Version, ProfkitError]] = []
    for version in (first, second):
        try:
            loaded.append(loaded_files(version, options.run, folder / "first", progress.tick))
        except (UsageError, WorkloadError) as error:
            faults.append((version, error))
    if not faults:
        return loaded
    version, fault = faults[0]
    if len(faults) == 2 and type(faults[1][1]) is type(fault):
        said = fault.message.removeprefix(version.name)
        where = "in both versions" + (" the command" if isinstance(fault, WorkloadError) else "")
        raise type(fault)(where + said, fault.fix)
    if fault.fix is None and version.commit and fault.code == NOT_INSTALLED:
        fault.fix = SETUP
    raise fault


def _warn_of_budget(seconds: float, options: PairedOptions, progress: Progress) -> None:
    """`seconds` of one pair: the first one, which is a little slower than those that follow."""
    needed = FIRST_ROUNDS * seconds
    if needed > options.budget:
        progress.note(
            f"warning: a pair takes about {seconds:.1f} s, and nothing can be said of fewer than {FIRST_ROUNDS}: "
            f"the budget of {options.budget:.0f} s is too small; use --budget {math.ceil(SPARE * needed)}"
        )


# ---------------------------------------------------------------- whose code runs


def _refuse_one_program(first: Version, second: Version, setup: Sequence[str]) -> None:
    """Raise UsageError where both would run one program that was built in the repository."""
    roots = _roots((first, second))
    programs = [_program(version) for version in (first, second)]
    if programs[0] is None or programs[0] != programs[1] or first.root == second.root:
        return
    if any(_is_code_of(root, programs[0]) for root in roots) and is_machine_code((programs[0],)):
        why = "it is in no commit"
        if setup:
            why += f", and the setup command ({shlex.join(setup)}) built none in the checkout of {first.name}"
        raise UsageError(
            f"both versions would run the same program, {programs[0]}: {why}, so nothing is compared",
            OptionFix("--setup", "make")
            if not setup
            else OptionFix(
                "--setup", text="--setup with what builds it, as it is typed in the repository's folder"
            ),
        )


def _built_before(version: Version, changed: Sequence[str]) -> Fact | None:
    """A warning where the working tree's program was built before a source that differs was saved: it may be the old.

    Of a program that is in a commit, or was set up, the question does not arise.
    """
    program = _program(version)
    if version.root is None or version.repository is not None or program is None:
        return None
    try:
        if not _is_code_of(version.root, program) or not is_machine_code((program,)):
            return None
        built = Path(program).stat().st_mtime
        for name in changed:
            source = version.root / name
            if source.suffix in IN_BRACES and source.is_file() and source.stat().st_mtime > built:
                own = os.path.relpath(program, version.cwd)
                return Fact.of("built-before", program=own, version=version.name, path=name)
    except OSError:
        return None
    return None


def _program(version: Version) -> str | None:
    word = version.command[0]
    return os.path.realpath(version.cwd / word) if os.sep in word else None


def _refuse_foreign_code(version: Version, files: frozenset[str], both: Sequence[Version]) -> None:
    """Raise UsageError where `version` loaded code of the repository that is not in its own folder.

    Files of the command line are let be: a script that is in no commit is the same for both on purpose.
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
        other = next((v.name for v in both if v.root == root), f"the working tree ({root})")
        raise UsageError(
            f"{version.name} runs the code of {other}: it loads {file.relative_to(root)} from there, "
            "so nothing is compared",
            _fix_of(file, root, version),
        )


def _named(version: Version) -> frozenset[str]:
    """The files that the words of its command are, or would be: its script is no module."""
    return frozenset(os.path.realpath(version.cwd / word) for word in version.command if "\0" not in word)


def _roots(both: Sequence[Version]) -> set[Path]:
    """All folders with code of this repository: those of the versions, and that which they were checked out from."""
    return {path for version in both for path in (version.root, version.repository) if path is not None}


def _fix_of(file: Path, root: Path, version: Version) -> str:
    """The folder for PYTHONPATH, where the version has the same one; else an installation of its own."""
    folder = file.parent
    while folder != root and (folder / "__init__.py").is_file():
        folder = folder.parent
    inside = folder.relative_to(root)
    assert version.root is not None
    if file.suffix != ".py" or not (version.root / inside).is_dir():
        return SETUP
    found = os.path.relpath(version.root / inside, version.cwd)
    if Path(version.environment().get("PYTHONPATH", "").split(os.pathsep)[0]) == version.root / inside:
        return SETUP  # that is there already, and the program puts another folder before it
    return OptionFix("PYTHONPATH", found, f"PYTHONPATH={shlex.quote(found)} profkit compare ...")


def _cannot_be_asked(version: Version) -> Fact | None:
    """A note where Python's own options keep it from telling which files it loads, and from looking in PYTHONPATH."""
    environment, _ = loaded_files_environment(version.command, Path())
    if environment is not None or find_interpreter(version.command) is None:
        return None
    return Fact("not-asked")


def _is_code_of(root: Path, path: str) -> bool:
    """Whether a file is of the code in `root`: an environment that lies there is no code of it."""
    file = Path(path)
    if not file.is_relative_to(root):
        return False
    inside = file.relative_to(root).parts
    if "site-packages" in inside or "dist-packages" in inside:
        return False
    folders = [root.joinpath(*inside[:depth]) for depth in range(1, len(inside))]
    return not any((folder / "pyvenv.cfg").is_file() for folder in folders)
