"""Builds the command lines of callgrind, and fits caches to what it can simulate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from math import log2
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import Cache, Fact
from profkit.hardware.peaks import thread_environment
from profkit.profilers.faults import KnownFault, first_known, load_faults

DEFAULT_WAYS = 16  # where the machine does not say; most last levels have 16 (Zen) to 20 (Xeon)
_MIN_LINE = 16  # valgrind refuses smaller lines (cg_arch.c, MIN_LINE_SIZE)


@dataclass(frozen=True)
class Geometry:
    """A valid geometry, size and line in bytes; `note` says what was changed, None where nothing was."""

    size: int
    ways: int
    line: int
    note: Fact | None = None

    @property
    def sets(self) -> int:
        """Return the number of sets, a power of two."""
        return self.size // (self.ways * self.line)

    def option(self) -> str:
        """Format the geometry as valgrind's `--D1=` and its siblings take it."""
        return f"{self.size},{self.ways},{self.line}"


def fit_geometry(cache: Cache) -> Geometry:
    """Return the valid geometry nearest to `cache`.

    It has a power of two of sets near the cache's own, and the ways that keep its size. Raises ValueError for a
    cache of no size.
    """
    if cache.size <= 0:
        raise ValueError(f"a level {cache.level} cache of {cache.size} bytes cannot be simulated")
    line = _power_of_two(cache.line if cache.line >= _MIN_LINE else 64)
    sets = _power_of_two(max(1.0, cache.size / (line * (cache.ways if cache.ways > 0 else DEFAULT_WAYS))))
    near = max(1, round(cache.size / (sets * line)))
    best = Geometry(near * sets * line, near, line)
    if (best.size, best.ways, best.line) == (cache.size, cache.ways, cache.line):
        return best
    requested = {"level": cache.level, "size": cache.size, "ways": cache.ways, "line": cache.line}
    new = {"new_size": best.size, "new_ways": best.ways, "new_line": best.line}
    note = Fact.of("changed-cache", **requested, **new)
    return Geometry(best.size, best.ways, best.line, note)


def _power_of_two(number: float) -> int:
    return 1 << round(log2(number))


# Compilers and system queries that a workload starts are not what it computes, and simulating one costs minutes.
_NOT_FOLLOWED = (
    "*/gcc*,*/g++*,*/cc,*/c++,*/cc1*,*/clang*,*/*-linux-gnu-*,*/nvcc,*/ptxas*,*/ld,*/ld.*,*/as,"
    "*/ldconfig*,*/lscpu,*/uname,*/git"
)


def is_followed(program: str) -> bool:
    """Return whether valgrind would simulate a program, and not only the first steps of a driver."""
    return not any(fnmatch(f"/{Path(program).name}", pattern) for pattern in _NOT_FOLLOWED.split(","))


COST = 60.0  # a numpy script of 77 ms took 60 times as long; starting torch takes about 10 times as long


def single_thread_env() -> dict[str, str]:
    """Return the environment for a simulated workload: one thread, and the same work in every run.

    Valgrind runs one thread at a time: threads that spin for work cost minutes and count instructions that mean
    nothing. Hash randomisation moves dictionaries, and with them a per mille of the instructions, from run to
    run.
    """
    return {**thread_environment(1), "PYTHONHASHSEED": "0"}


def callgrind_argv(
    workload_argv: Sequence[str],
    out: Path,
    *,
    i1: Cache,
    d1: Cache,
    last: Cache,
    region: bool,
    instructions: bool,
    valgrind: str = "valgrind",
    setarch: str | None = None,
    fair: bool = False,
) -> tuple[str, ...]:
    """Return the command that simulates `workload_argv` and leaves `<out>.<pid>` per process.

    `last` is the level behind L1: run once with L2 and once with L3, and all three levels have a miss rate.
    `region`: count only what `profkit.region` marks; else the whole of every process. `instructions`: costs by
    instruction address, which the instruction mix needs, instead of by source line. `setarch`: a working setarch,
    for the programs that are not followed; valgrind itself places a simulated one, whose counts were the same to
    the last miss with and without it (3.19, x86-64). Children are followed (`env python ...` is one), compilers
    are not. `fair`: threads have their turns in order; else one that wakes up may find no moment between two turns
    of another, on a busy machine for seconds. The geometry is always given: what valgrind detects by itself is wrong
    on new processors.
    """
    command = [] if setarch is None else [setarch, "-R"]
    command += [
        valgrind,
        "--tool=callgrind",
        "--vgdb=no",  # no debugger is used, and its pipes would stay in the temporary folder if a run is killed
        "--trace-children=yes",
        f"--trace-children-skip={_NOT_FOLLOWED}",
        f"--callgrind-out-file={str(out).replace('%', '%%')}.%p",
        "--combine-dumps=yes",  # else each region leaves a file of its own
        # Translate with fewer optimizations: counts are the same, and `import torch`, most of whose code runs only a
        # few times, takes a quarter less (docs/measurements.md).
        "--vex-iropt-level=1",
        "--cache-sim=yes",
        "--simulate-wb=yes",  # dirty lines that go back to memory; costs nothing measurable
        "--branch-sim=yes",
        f"--I1={fit_geometry(i1).option()}",
        f"--D1={fit_geometry(d1).option()}",
        f"--LL={fit_geometry(last).option()}",
        "--separate-threads=no",
        f"--dump-instr={'yes' if instructions else 'no'}",
        f"--dump-line={'no' if instructions else 'yes'}",
    ]
    if region:
        command.append("--instr-atstart=no")
    if fair:
        command.append("--fair-sched=try")
    return (*command, *workload_argv)


def instructions_argv(
    workload_argv: Sequence[str], out: Path, *, marked: bool, valgrind: str = "valgrind"
) -> tuple[str, ...]:
    """Return the cheapest command, which counts instructions and nothing else.

    Of a whole process cachegrind prints them in its log, `<out>.<pid>`. Only callgrind can begin at a mark: what
    `profkit.region` marks is in its files, as `callgrind_outputs` finds them.
    """
    name = f"{str(out).replace('%', '%%')}.%p"
    if marked:
        tool = [
            "--tool=callgrind",
            "--instr-atstart=no",
            "--combine-dumps=yes",
            f"--callgrind-out-file={name}",
        ]
    else:
        tool = ["--tool=cachegrind", "--cachegrind-out-file=/dev/null", f"--log-file={name}"]
    # All children, compilers too: what is left out of a count is taken for the same in both versions.
    return (valgrind, *tool, "--cache-sim=no", "--vgdb=no", "--trace-children=yes", *workload_argv)


def changed_geometries(*caches: Cache) -> tuple[Fact, ...]:
    """Return what had to be changed so that valgrind can simulate these caches."""
    return tuple(note for cache in caches if (note := fit_geometry(cache).note) is not None)


def callgrind_outputs(out: Path) -> tuple[Path, ...]:
    """Return the files of a run of `callgrind_argv(..., out)`, one per process, in order of pids."""
    outputs = [
        path
        for path in out.parent.glob(_escape_glob(out.name) + ".*")
        if path.suffix[1:].isdigit() and path.stat().st_size > 0  # empty: its process was killed
    ]
    return tuple(sorted(outputs, key=lambda p: int(p.suffix[1:])))


def _escape_glob(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


INSTALL = "apt-get install valgrind   (or: dnf install valgrind, apk add valgrind)"


def known_faults() -> tuple[KnownFault, ...]:
    """Load the table of valgrind's error texts."""
    return load_faults(Path(__file__).with_name("faults.yaml"), install=INSTALL)


def explain(text: str, returncode: int) -> Fault | None:
    """Return what went wrong by what valgrind and the workload printed; None where it is not valgrind's error."""
    return first_known(known_faults(), text, returncode) if returncode else None
