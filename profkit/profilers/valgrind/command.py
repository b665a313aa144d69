"""How callgrind is called: the one place with its flags; the caches that it can simulate; what its errors mean."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2
from pathlib import Path

from profkit.core.errors import Fault, MachineError, UnreadableReport
from profkit.core.files.whole import TemporaryFolder
from profkit.core.tables import judge_rows
from profkit.core.types import Cache, Check, Directive, Report, Step, Switch
from profkit.hardware.peaks import thread_environment
from profkit.hardware.processor import data_cache, data_caches, instruction_cache
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import (
    KnownFault,
    ToolAbility,
    ask_tool,
    ask_version,
    find_tool,
    first_known,
    load_faults,
)
from profkit.profilers.valgrind.read import read_callgrind

DEFAULT_WAYS = 16  # where the machine does not say; most last levels have 16 (Zen) to 20 (Xeon)
_MIN_LINE = 16  # valgrind refuses smaller lines (cg_arch.c, MIN_LINE_SIZE)


@dataclass(frozen=True)
class Geometry:
    """A legal geometry, size and line in bytes; `note` says what was changed, None where nothing was."""

    size: int
    ways: int
    line: int
    note: str | None = None

    @property
    def sets(self) -> int:
        """Number of sets, a power of two."""
        return self.size // (self.ways * self.line)

    def option(self) -> str:
        """As valgrind's `--D1=` and its siblings take it."""
        return f"{self.size},{self.ways},{self.line}"


def fit_geometry(cache: Cache) -> Geometry:
    """The legal geometry nearest to `cache`: a power of two of sets near its own, and the ways that keep its size.

    Raises ValueError for a cache of no size.
    """
    if cache.size <= 0:
        raise ValueError(f"a level {cache.level} cache of {cache.size} bytes cannot be simulated")
    line = _power_of_two(cache.line if cache.line >= _MIN_LINE else 64)
    sets = _power_of_two(max(1.0, cache.size / (line * (cache.ways if cache.ways > 0 else DEFAULT_WAYS))))
    near = max(1, round(cache.size / (sets * line)))
    best = Geometry(near * sets * line, near, line)
    if (best.size, best.ways, best.line) == (cache.size, cache.ways, cache.line):
        return best
    note = (
        f"L{cache.level} of {_format_size(cache.size)}, {cache.ways}-way, {cache.line} B lines is simulated as "
        f"{_format_size(best.size)}, {best.ways}-way, {best.line} B lines: valgrind needs a power of two of sets"
    )
    return Geometry(best.size, best.ways, best.line, note)


def _power_of_two(number: float) -> int:
    return 1 << round(log2(number))


def _format_size(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


# Compilers and system queries that a workload starts are not what it computes, and simulating one costs minutes.
_NOT_FOLLOWED = (
    "*/gcc*,*/g++*,*/cc,*/c++,*/cc1*,*/clang*,*/*-linux-gnu-*,*/nvcc,*/ptxas*,*/ld,*/ld.*,*/as,"
    "*/ldconfig*,*/lscpu,*/uname,*/git"
)

COST = 60.0
COST_NOTE = "a numpy script of 77 ms took 60 times as long; starting torch takes about 10 times as long"


def single_thread_env() -> dict[str, str]:
    """Environment for a simulated workload: one thread, and the same work in every run.

    Valgrind runs one thread at a time: threads that spin for work cost minutes and count instructions that mean
    nothing. Hash randomisation moves dictionaries, and with them a per mille of the instructions, from run to run.
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
    """The command that simulates `workload_argv` with these caches and leaves `<out>.<pid>` per process.

    `last` is the level behind L1: run once with L2 and once with L3, and all three levels have a miss rate.
    `region`: count only what `profkit.region` marks; else the whole of every process. `instructions`: costs
    by instruction address, which the instruction mix needs, instead of by source line. `setarch`: a working
    setarch, for the programs that are not followed; valgrind itself places a simulated one, whose counts were
    the same to the last miss with and without it (3.19, x86-64). Children are followed (`env python ...` is one),
    compilers are not. The geometry is always given: what valgrind detects by itself is wrong on new processors.
    """
    command = [] if setarch is None else [setarch, "-R"]
    command += [
        valgrind,
        "--tool=callgrind",
        "--vgdb=no",  # nobody debugs, and its pipes would stay in the temporary folder when a run is ended
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


def changed_geometries(*caches: Cache) -> tuple[str, ...]:
    """What had to be changed so that valgrind can simulate these caches, one sentence each."""
    return tuple(note for cache in caches if (note := fit_geometry(cache).note) is not None)


def callgrind_outputs(out: Path) -> tuple[Path, ...]:
    """The files that a run of `callgrind_argv(..., out)` left, one per process, in order of pids."""
    found = [
        path
        for path in out.parent.glob(_escape_glob(out.name) + ".*")
        if path.suffix[1:].isdigit() and path.stat().st_size > 0  # empty: its process was killed
    ]
    return tuple(sorted(found, key=lambda p: int(p.suffix[1:])))


def _escape_glob(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


INSTALL = "apt-get install valgrind   (or: dnf install valgrind, apk add valgrind)"


def known_faults() -> tuple[KnownFault, ...]:
    """What valgrind's error texts mean."""
    return load_faults(Path(__file__).with_name("faults.yaml"), install=INSTALL)


def explain(text: str, returncode: int) -> Fault | None:
    """What went wrong, from what valgrind and the workload printed; None where it is not valgrind's."""
    return first_known(known_faults(), text, returncode) if returncode else None


_TABLE = Path(__file__).with_name("checks.yaml")
_ELSEWHERE = ("/usr/local/bin", "/opt/valgrind/bin", "/opt/homebrew/bin")  # not always on a service's PATH


def find_valgrind() -> Path | None:
    """The valgrind to call: `PROFKIT_VALGRIND` where set, else that of PATH, of this environment, or a usual place."""
    return find_tool("valgrind", "PROFKIT_VALGRIND", folders=_ELSEWHERE)


_SECONDS = 60.0  # simulating `true` takes half a second; a busy machine may take many times that
_TINY = Cache(1, 32768, 8)
_VERSION = re.compile(r"valgrind-(\S+)")


@dataclass(frozen=True)
class ValgrindAbility(ToolAbility):
    """What valgrind can do on this machine."""

    setarch: str | None = None  # a setarch that may take the randomness out of addresses


@lru_cache(maxsize=1)
def probe_valgrind() -> ValgrindAbility:
    """Simulate `true` once and read what came of it; the answer is kept for this process."""
    absent = Fault("valgrind is not installed", INSTALL)
    if sys.platform == "darwin":
        absent = Fault("valgrind does not run on macOS", "--tool xctrace   (Instruments counts on macOS)")
    answer = ask_version(find_valgrind() or absent, _VERSION, lambda *_: None, f"reinstall it: {INSTALL}")
    if not answer.works:
        return ValgrindAbility(**vars(answer))
    valgrind = ValgrindAbility(**vars(answer), setarch=_find_setarch())
    fault = _simulate_nothing(valgrind)
    return valgrind if fault is None else replace(valgrind, works=False, reason=fault.reason, fix=fault.fix)


def _simulate_nothing(valgrind: ValgrindAbility) -> Fault | None:
    """Why a simulation of `true` leaves no counts; None where it does."""
    true = shutil.which("true") or "/bin/true"
    with TemporaryFolder("probe") as folder:
        out = Path(folder) / "probe"
        argv = callgrind_argv(
            [true],
            out,
            i1=_TINY,
            d1=_TINY,
            last=Cache(2, 1 << 20, 16),
            region=False,
            instructions=True,
            valgrind=str(valgrind.path),
            setarch=valgrind.setarch,
        )
        returncode, text = ask_tool(argv, _SECONDS)
        if returncode != 0:
            ended = f"valgrind ended with {returncode}: {' '.join(text.split())[-200:]}"
            return explain(text, returncode) or Fault(ended)
        try:
            counted = any(counter.value for counter in _read_outputs(out).counters)
        except UnreadableReport as error:
            return Fault(error.message, error.fix)
    return None if counted else Fault("callgrind ran, but wrote no counts")


def _find_setarch() -> str | None:
    """A setarch that works: containers often forbid the call that switches randomisation off."""
    found = shutil.which("setarch")
    if found is None or platform.system() != "Linux":
        return None
    return found if ask_tool((found, "-R", shutil.which("true") or "/bin/true"), _SECONDS)[0] == 0 else None


def valgrind_checks() -> Iterator[Check]:
    """Try valgrind, and tell what came of it; where it is absent there is one check that says so."""
    return judge_valgrind(probe_valgrind())


def _read_outputs(out: Path) -> Report:
    files = callgrind_outputs(out)
    if not files:
        raise UnreadableReport("callgrind wrote no counts")
    return read_callgrind(*files)


def judge_valgrind(ability: ValgrindAbility) -> Iterator[Check]:
    """What the probe's answers mean."""
    return judge_rows(_TABLE, "valgrind", ability, {"install": INSTALL})


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect_report` makes the report. Raises MachineError where valgrind cannot do it here."""
    valgrind = probe_valgrind()
    if not valgrind.works:
        raise MachineError(valgrind.reason or "valgrind does not work here", valgrind.fix)
    first, levels = data_cache(request.machine, 1), data_caches(request.machine)
    if first is None or len(levels) < 2:
        raise MachineError("this machine tells no cache geometry, and a guessed one says nothing about it")
    argv = callgrind_argv(
        request.command,
        request.scratch / "callgrind",
        i1=instruction_cache(request.machine),
        d1=first,
        last=levels[-1],
        region=request.marked,
        instructions=True,
        valgrind=str(valgrind.path),
        setarch=valgrind.setarch,
    )
    directive = Directive(
        "counters",
        str(request.scratch / "region"),
        switch=Switch("valgrind") if request.marked else None,
        iterations=1,
    )
    return Step("record", argv, env=single_thread_env(), directive=directive, tool="valgrind")


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what the simulation left to the report: of several processes the file that is largest."""
    files = sorted(callgrind_outputs(request.scratch / "callgrind"), key=lambda path: path.stat().st_size)
    if not files:
        raise MachineError("valgrind left no report: the workload ended before it could write one")
    shutil.copyfile(files[-1], request.report)
    if len(files) == 1:
        return ()
    return (f"the workload ran {len(files)} processes; the report is that of the largest",)
