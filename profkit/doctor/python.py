"""The Python that profkit runs in: its version, what it shows to perf, and the packages that passes need."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator

from profkit.doctor.trial import Trial, attempt
from profkit.model import Check

OLDEST = (3, 10)

# Package -> (what it is for, the line that installs it, whether its absence takes something away).
_PACKAGES = (
    ("numpy", "the measured peaks that bandwidth and roofline are held against", "pip install numpy", True),
    (
        "capstone",
        "the share of SIMD instructions and the FLOPs of a simulation",
        "pip install capstone",
        True,
    ),
    ("psutil", "the memory of a workload and its process tree", "pip install psutil", True),
    ("torch", "workloads written in torch", "pip install torch", False),
    ("triton", "workloads written in triton", "pip install triton", False),
)
_IMPORT = (
    "import importlib, sys\n"
    "module = importlib.import_module(sys.argv[1])\n"
    "print('version', getattr(module, '__version__', 'unknown'))\n"
)


def python_checks() -> Iterator[Check]:
    """The interpreter, its frames under perf, and each package by importing it in a process of its own."""
    yield _interpreter()
    yield frames_check(sys.version_info[:2])
    yield from _workload_python()
    trials = _import_all([name for name, *_ in _PACKAGES])
    for name, purpose, line, needed in _PACKAGES:
        yield package_check(name, purpose, line, needed, trials[name])


def _interpreter() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST:
        fix = "use Python 3.10 or newer"
        return Check("python", "refused", "profkit needs Python 3.10", fix, sys.executable, version)
    name = platform.python_implementation()
    return Check("python", "ok", f"{name} {version}", path=sys.executable, version=version)


def frames_check(version: tuple[int, int]) -> Check:
    """What perf can tell of Python functions, by the interpreter's version (What's New in 3.12 and 3.13)."""
    told = f"Python {version[0]}.{version[1]}"
    if version >= (3, 13):
        return Check("python frames in perf", "ok", f"{told} writes them with -X perf_jit: full stacks")
    if version == (3, 12):
        return Check(
            "python frames in perf",
            "limited",
            f"{told} writes them with -X perf, but a build without frame pointers shows only the innermost",
            "run the workload with Python 3.13 or newer for full stacks",
        )
    return Check(
        "python frames in perf",
        "limited",
        f"{told} has no perf trampoline: perf shows native frames, cProfile shows the Python ones",
        "run the workload with Python 3.12 or newer (3.13 for full stacks)",
    )


def _workload_python() -> Iterator[Check]:
    """A workload typed as `python x.py` runs in whatever PATH finds first, which may be another one."""
    path = shutil.which("python") or shutil.which("python3")
    if path is None:
        yield Check("python on PATH", "limited", "none: a workload must name its interpreter in full")
        return
    trial = attempt([path, "-c", "import sys; print(sys.prefix); print(sys.version.split()[0])"])
    lines = trial.output.split("\n")
    if not trial.ok or len(lines) < 2:
        yield Check("python on PATH", "refused", f"{trial.ending}: {trial.first_line[:160]}", path=path)
    elif lines[0].strip() != sys.prefix:
        detail = (
            "another one than profkit's: it runs a workload typed as `python x.py`, with its own packages"
        )
        yield Check("python on PATH", "ok", detail, path=path, version=lines[1].strip())


def _import_all(names: list[str]) -> dict[str, Trial]:
    """Import each in its own process, two at a time: a package that crashes takes only itself along."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        tried = pool.map(lambda name: attempt([sys.executable, "-c", _IMPORT, name], seconds=30.0), names)
        return dict(zip(names, tried, strict=True))


def package_check(name: str, purpose: str, line: str, needed: bool, trial: Trial) -> Check:
    """What came of importing one package."""
    version = next(
        (text.split(" ", 1)[1] for text in trial.output.splitlines()[::-1] if text.startswith("version ")),
        None,
    )
    if trial.ok and version is not None:
        return Check(name, "ok", f"for {purpose}", version=version)
    last = next((text.strip() for text in trial.output.splitlines()[::-1] if text.strip()), trial.ending)
    if "No module named" in last and f"'{name}'" in last:
        absent = "without it these are unavailable" if needed else "needed only by such workloads"
        return Check(name, "missing", f"not installed: for {purpose}; {absent}", line)
    return Check(name, "refused", f"cannot be imported ({trial.ending}): {last[:200]}", line)
