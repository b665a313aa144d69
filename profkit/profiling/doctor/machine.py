"""The doctor's checks of the machine itself: folders to write to, processor and caches, Python and its packages."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.formatting import plural
from profkit.core.types import Cache, Check, CheckState
from profkit.hardware.machine import cache_warnings, read_machine
from profkit.hardware.processor import data_caches, instruction_cache
from profkit.profilers.programs import CommandTrial, try_command

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# perf record with 16 KiB of stack at 997 Hz wrote 4.25 MB for 0.26 s: a minute is 1 GB.
SPACE_LEAST = 1 * GIB
SPACE_NONE = 64 * MIB


def storage_checks(output: Path = Path("reports")) -> Iterator[Check]:
    """The folder that runs are written to (or will be made in), and the temporary folder."""
    yield folder_check("output folder", output, "profkit profile --output DIR, with a folder you may write")
    yield folder_check(
        "temporary folder", Path(tempfile.gettempdir()), "export TMPDIR=DIR, with a folder you may write"
    )


def folder_check(name: str, folder: Path, fix: str) -> Check:
    """Write a small file into `folder` (or where it would be made) and look at the space left."""
    place = folder.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".profkit-") as file:
            file.write(b"\0" * 65536)
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(place).free
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(name, "refused", f"{place} is not writable: {reason}", fix, str(place))
    detail = f"{place} is writable, {free / GIB:.1f} GiB free"
    if free < SPACE_LEAST:
        state: CheckState = "refused" if free < SPACE_NONE else "limited"
        return Check(name, state, f"{detail}; a trace of one minute may take 1 GiB", fix, str(place))
    return Check(name, "ok", detail, path=str(place))


def machine_checks(root: Path = Path("/")) -> Iterator[Check]:
    """The processor, and whether its cache geometry can be believed."""
    machine = read_machine(root)
    memory = f"{machine.memory_bytes / GIB:.1f} GiB" if machine.memory_bytes else "memory size unknown"
    place = f", {machine.virtual}" if machine.virtual else ", bare metal"
    yield Check(
        "processor",
        "ok",
        f"{machine.cpu} ({machine.vendor}), {plural(machine.cores, 'usable core')}, {memory}{place}",
    )
    doubts = cache_warnings(root)
    simulated = machine.system != "Darwin"  # valgrind is not for macOS: there nothing depends on the ways
    sizes = ", ".join(
        [
            f"I1 {_format_cache(instruction_cache(machine))}",
            *(f"{'D1' if c.level == 1 else f'L{c.level}'} {_format_cache(c)}" for c in data_caches(machine)),
        ]
    )
    yield Check(
        "caches",
        "limited" if doubts and simulated else "ok",
        f"{sizes}{' - ' + '; '.join(doubts) if doubts else ''}",
        "compare simulated miss rates only between runs with the same geometry"
        if doubts and simulated
        else None,
    )


def _format_cache(cache: Cache) -> str:
    size = f"{cache.size // MIB} MiB" if cache.size % MIB == 0 else f"{cache.size // KIB} KiB"
    return f"{size} {cache.ways}-way{' (assumed)' if cache.source == 'assumed' else ''}"


OLDEST = (3, 10)
# Package, and what profkit needs it for. What only workloads need (None) is looked for in the Python that runs them.
_PACKAGES: tuple[tuple[str, str | None], ...] = (
    ("numpy", "measures this machine's peak bandwidth and arithmetic"),
    ("capstone", "counts SIMD instructions and FLOPs in a simulation"),
    ("psutil", "measures the memory of a workload and its child processes"),
    ("torch", None),
    ("triton", None),
)
_NOT_ON_A_MAC = ("capstone", "triton")  # nothing is simulated there, and there is no Triton for it
_IMPORT = (
    "import importlib, sys\n"
    "module = importlib.import_module(sys.argv[1])\n"
    "print('version', getattr(module, '__version__', 'unknown'))\n"
)


def python_checks() -> Iterator[Check]:
    """The interpreter, its frames under perf, and each package by importing it in a process of its own."""
    yield _interpreter_check()
    workload_python = _workload_python_check()
    theirs, version = sys.executable, sys.version_info[:2]
    if workload_python is not None:
        yield workload_python
        if workload_python.path is not None and workload_python.version is not None:
            major, minor = workload_python.version.split(".")[:2]
            theirs, version = workload_python.path, (int(major), int(minor))
    yield frames_check(version) if platform.system() != "Darwin" else FRAMES_ON_A_MAC
    yield from signed_checks(theirs)
    packages = [row for row in _PACKAGES if platform.system() != "Darwin" or row[0] not in _NOT_ON_A_MAC]
    homes = {name: sys.executable if purpose else theirs for name, purpose in packages}
    trials = _import_all(homes)
    for name, purpose in packages:
        yield package_check(name, purpose, f"{homes[name]} -m pip install {name}", trials[name])
    if platform.system() != "Darwin":
        yield flag_gems_check()


FRAMES_ON_A_MAC = Check(
    "python frames in Instruments",
    "limited",
    "Time Profiler shows native frames only; cProfile shows Python functions",
)


def signed_checks(python: str) -> Iterator[Check]:
    """One line for a Python that macOS protects: Instruments may not look into programs that Apple has signed."""
    if platform.system() != "Darwin":
        return
    real = os.path.realpath(python)
    if real.startswith(("/usr/bin/", "/System/", "/Library/Developer/")) or "/Xcode" in real:
        detail = "this is Apple's own Python: Instruments may not be allowed to profile it or what it starts"
        yield Check(
            "python for Instruments",
            "limited",
            detail,
            "use a Python from python.org, Homebrew, uv or conda",
            real,
        )


def _interpreter_check() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST:
        fix = "use Python 3.10 or newer"
        return Check("python", "refused", "profkit needs Python 3.10", fix, sys.executable, version)
    name = platform.python_implementation()
    return Check("python", "ok", f"{name} {version}", path=sys.executable, version=version)


def frames_check(version: tuple[int, int]) -> Check:
    """What perf can show of Python functions, by the interpreter's version (What's New in 3.12 and 3.13)."""
    python = f"Python {version[0]}.{version[1]}"
    if version >= (3, 13):
        return Check("python frames in perf", "ok", f"{python} gives perf full stacks (-X perf_jit)")
    if version == (3, 12):
        return Check(
            "python frames in perf",
            "limited",
            f"{python} names them (-X perf); a build without frame pointers shows only the innermost one",
            "run the workload with Python 3.13 or newer for full stacks",
        )
    return Check(
        "python frames in perf",
        "limited",
        f"{python} has no perf trampoline: perf shows native frames only; cProfile shows Python functions",
        "run the workload with Python 3.12 or newer (3.13 for full stacks)",
    )


def _workload_python_check() -> Check | None:
    """A workload typed as `python x.py` runs in whatever PATH finds first; None where that is profkit's own."""
    path = shutil.which("python") or shutil.which("python3")
    if path is None:
        return Check("python on PATH", "limited", "there is none: give the full path of the interpreter")
    trial = try_command([path, "-c", "import sys; print(sys.prefix); print(sys.version.split()[0])"])
    lines = trial.output.split("\n")
    if not trial.ok or len(lines) < 2:
        return Check("python on PATH", "refused", f"{trial.ending}: {trial.first_line[:160]}", path=path)
    if lines[0].strip() == sys.prefix:
        return None
    detail = (
        "not the Python that runs profkit; a workload typed as `python x.py` runs in it, with its packages"
    )
    return Check("python on PATH", "ok", detail, path=path, version=lines[1].strip())


def _import_all(homes: dict[str, str]) -> dict[str, CommandTrial]:
    """Import each package in a process of its own, two at a time: one that crashes takes only itself along.

    `homes` says by which interpreter.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        tried = pool.map(lambda name: try_command([homes[name], "-c", _IMPORT, name], seconds=30.0), homes)
        return dict(zip(homes, tried, strict=True))


def flag_gems_check() -> Check:
    """Whether there is FlagGems to evaluate; it is not imported, since it wants a GPU then."""
    from profkit.hardware.gpu import read_gpus
    from profkit.kernels.evaluation.sources.flag_gems import PACKAGE, find_package

    try:
        path = find_package()
    except MachineError as error:
        detail = "not installed; `profkit evaluate --backend flag_gems` needs it"
        if not read_gpus():
            return Check(PACKAGE, "missing", f"{detail}, and a GPU: of no use here, where there is none")
        return Check(PACKAGE, "missing", detail, error.fix)
    return Check(
        PACKAGE, "ok", "kernels for `profkit evaluate --backend flag_gems`, on a GPU", path=str(path)
    )


def package_check(name: str, purpose: str | None, install: str, trial: CommandTrial) -> Check:
    """The result of importing one package; `purpose` is what profkit needs it for, None where only workloads do."""
    version = next(
        (text.split(" ", 1)[1] for text in trial.output.splitlines()[::-1] if text.startswith("version ")),
        None,
    )
    if trial.ok and version is not None:
        return Check(name, "ok", purpose or f"for workloads that use {name}", version=version)
    last = next((text.strip() for text in trial.output.splitlines()[::-1] if text.strip()), trial.ending)
    if "No module named" in last and f"'{name}'" in last:
        need = f"it {purpose}" if purpose else f"only workloads that use {name} need it"
        return Check(name, "missing", f"not installed; {need}", install)
    return Check(name, "refused", f"cannot be imported ({trial.ending}): {last[:200]}", install)
