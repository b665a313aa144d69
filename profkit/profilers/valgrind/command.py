"""Builds callgrind's command lines, fits caches that it can simulate, and joins two runs to three levels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from math import log2
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.types import RUN, Cache, Counter, Fact, Report, Scope
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


COST = 60.0
COST_NOTE = "a numpy script of 77 ms took 60 times as long; starting torch takes about 10 times as long"


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
) -> tuple[str, ...]:
    """Return the command that simulates `workload_argv` and leaves `<out>.<pid>` per process.

    `last` is the level behind L1: run once with L2 and once with L3, and all three levels have a miss rate.
    `region`: count only what `profkit.region` marks; else the whole of every process. `instructions`: costs by
    instruction address, which the instruction mix needs, instead of by source line. `setarch`: a working setarch,
    for the programs that are not followed; valgrind itself places a simulated one, whose counts were the same to
    the last miss with and without it (3.19, x86-64). Children are followed (`env python ...` is one), compilers
    are not. The geometry is always given: what valgrind detects by itself is wrong on new processors.
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


# the same work differs in instructions by per milles (hashes, addresses); theory is held to 2 %
SAME_WORK = 0.005
HOTTEST = 20  # functions that get counters of their own, and
MIN_SHARE = 0.005  # only with this share of all instructions: below it entering a region shows

_FIRST = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "Bc", "Bcm", "Bi", "Bim")
# The last level's counters and the events that they are the sum of: of the run whose last level is L2, and of the one
# with L3. Both runs write the same events.
_SECOND_LEVEL = {
    "I2mr": ("ILmr",),
    "D2mr": ("DLmr",),
    "D2mw": ("DLmw",),
    "D2wb": ("ILdmr", "DLdmr", "DLdmw"),
}
_THIRD_LEVEL = {
    "I3mr": ("ILmr",),
    "D3mr": ("DLmr",),
    "D3mw": ("DLmw",),
    "D3wb": ("ILdmr", "DLdmr", "DLdmw"),
}
# What the run tells whose last level is L2; all else is of the run with L3, where there is one.
OF_SECOND_RUN = frozenset(_SECOND_LEVEL)
_NO_L3 = Fact("no-third-level")


@dataclass(frozen=True)
class CacheLevels:
    """Counters of the run, of its regions and of its hottest functions.

    `Ir Dr Dw` executed instructions, data reads and writes; `I1mr D1mr D1mw` misses of the first level
    (instruction reads, data reads, data writes), `I2mr ... D3mw` those of the second and third; `D2wb D3wb` dirty
    lines that left that level; `Bc Bcm Bi Bim` conditional and indirect branches, and those mispredicted;
    `line_bytes`. Bytes moved to and from memory are line_bytes · (I3mr + D3mr + D3mw + D3wb). `same_work` is
    whether both simulations executed the same instructions; where not, `warnings` says so.
    """

    counters: tuple[Counter, ...]
    same_work: bool
    warnings: tuple[Fact, ...] = ()


def combine_levels(l2: Report, l3: Report | None) -> CacheLevels:
    """Combine the report whose last level was L2 with the one whose last level was L3.

    First-level counts, instructions and branches are those of `l3`, or of `l2` where the machine has no L3.
    """
    main = l2 if l3 is None else l3
    warnings = list(dict.fromkeys([*l2.warnings, *main.warnings]))
    same_work = _same_work(l2, main, warnings)
    line = _line_bytes(main)
    counters: list[Counter] = []
    for scope in _scopes(main):
        values = _scope_values(main, scope)
        counters += _combine_scope(_scope_values(l2, scope), None if l3 is None else values, scope)
        counters.append(line if scope == RUN else _with_scope(line, scope))
    l2_functions = _by_function(l2)
    for (function, library), values in _hottest_functions(main):
        scope = Scope("function", function, library)
        counters += _combine_scope(
            l2_functions.get((function, library)), None if l3 is None else values, scope, values
        )
        counters.append(_with_scope(line, scope))
    return CacheLevels(tuple(counters), same_work, tuple(warnings))


def _combine_scope(
    l2: Mapping[str, float] | None,
    l3: Mapping[str, float] | None,
    scope: Scope,
    first: Mapping[str, float] | None = None,
) -> list[Counter]:
    """Return the counters of one scope. `l2` is None if that run did not see it, `l3` without an L3."""
    main = first if first is not None else (l3 if l3 is not None else l2)
    counters = [_counter(name, (name,), main, scope) for name in _FIRST]
    for name, events in _SECOND_LEVEL.items():
        counters.append(_counter(name, events, l2, scope))
    for name, events in _THIRD_LEVEL.items():
        if l3 is None:
            counters.append(Counter(name, None, "not-supported", scope=scope, reason=_NO_L3))
        else:
            counters.append(_counter(name, events, l3, scope))
    return counters


def _counter(name: str, events: tuple[str, ...], values: Mapping[str, float] | None, scope: Scope) -> Counter:
    if values is None:
        reason = Fact.of("never-simulated", name=scope.name or "")
        return Counter(name, None, "not-counted", scope=scope, reason=reason)
    missing = [event for event in events if event not in values]
    if missing:
        reason = Fact.of("recorded-without", counters=" ".join(missing))
        return Counter(name, None, "not-supported", scope=scope, reason=reason)
    return Counter(name, sum(values[event] for event in events), "measured", scope=scope)


def _scopes(report: Report) -> list[Scope]:
    return [RUN, *dict.fromkeys(c.scope for c in report.counters if c.scope.kind == "region")]


def _scope_values(report: Report, scope: Scope) -> dict[str, float] | None:
    values = {c.name: c.value for c in report.counters if c.scope == scope and c.value is not None}
    return values or None


def _by_function(report: Report) -> dict[tuple[str, str | None], dict[str, float]]:
    """Sum own counters per function and library; parts of a function in several files are one."""
    sums: dict[tuple[str, str | None], dict[str, float]] = {}
    for hotspot in report.profiles[0].hotspots if report.profiles else ():
        if hotspot.counters:
            values = sums.setdefault((hotspot.function, hotspot.library), {})
            for event, value in hotspot.counters.items():
                values[event] = values.get(event, 0.0) + value
    return sums


def _hottest_functions(report: Report) -> list[tuple[tuple[str, str | None], dict[str, float]]]:
    functions = _by_function(report)
    total = (_scope_values(report, RUN) or {}).get("Ir", 0.0)
    ranked = sorted(functions.items(), key=lambda item: -item[1].get("Ir", 0.0))
    return [item for item in ranked[:HOTTEST] if item[1].get("Ir", 0.0) > MIN_SHARE * total]


def _same_work(l2: Report, l3: Report, warnings: list[Fact]) -> bool:
    ours, theirs = ((_scope_values(r, RUN) or {}).get("Ir") for r in (l2, l3))
    if ours is None or theirs is None:
        warnings.append(Fact("no-instructions-simulated"))
        return False
    difference = abs(ours - theirs) / max(ours, theirs, 1.0)
    if difference > SAME_WORK:
        warnings.append(Fact.of("different-simulations", one=ours, other=theirs, share=difference))
        return False
    return True


def _line_bytes(report: Report) -> Counter:
    matched = re.search(r"(\d+) B, (\d+) B,", report.facts.get("D1 cache", ""))
    if matched is None:
        return Counter("line_bytes", None, "not-supported", "B", reason=Fact("no-cache-geometry"))
    return Counter("line_bytes", float(matched[2]), "measured", "B")


def _with_scope(counter: Counter, scope: Scope) -> Counter:
    return Counter(
        counter.name, counter.value, counter.state, counter.unit, scope=scope, reason=counter.reason
    )
