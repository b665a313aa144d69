"""Whether valgrind works here: found, tried with a tiny simulation, and told by the doctor."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, UnreadableReport
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.tables import judge_rows
from profkit.core.types import Cache, Check, Report, Switch
from profkit.hardware.machine import read_machine
from profkit.hardware.processor import data_cache, instruction_cache
from profkit.profilers.programs import ToolAbility, ask_tool, ask_version, find_tool, install_line
from profkit.profilers.region_trial import try_region
from profkit.profilers.valgrind.command import (
    INSTALL,
    callgrind_argv,
    callgrind_outputs,
    explain,
    single_thread_env,
)
from profkit.profilers.valgrind.read import read_callgrind

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
    ability = probe_valgrind()
    yield from judge_valgrind(ability)
    if ability.works:
        yield from valgrind_region(str(ability.path))


def valgrind_region(valgrind: str) -> Iterator[Check]:
    """Switch callgrind on and off from inside a workload, by valgrind's client requests."""
    rounds, machine = 2_000, read_machine()
    first = data_cache(machine, 1) or _TINY
    with TemporaryFolder() as name:
        out = Path(name) / "callgrind"
        trial = try_region(
            "callgrind",
            Path(name),
            Switch("valgrind"),
            (rounds, 60_000),
            lambda workload: callgrind_argv(
                workload,
                out,
                i1=instruction_cache(machine),
                d1=first,
                last=data_cache(machine, 2) or first,
                region=True,
                instructions=False,
                valgrind=valgrind,
            ),
            single_thread_env(),
            lambda: _read_outputs(out),
            explain,
            "Ir",
        )
    # CPython takes 30 (optimised) to 700 (built without optimisation) instructions for a round of the loop.
    # The work around the region is 60 times as much, and the interpreter's start 10 million more.
    fits = 20 * rounds <= trial.counted <= 2_000 * rounds
    return judge_rows(_TABLE, "region", trial, {"path": valgrind, "rounds": rounds, "fits": fits})


def _read_outputs(out: Path) -> Report:
    files = callgrind_outputs(out)
    if not files:
        raise UnreadableReport("callgrind wrote no counts")
    return read_callgrind(*files)


def judge_valgrind(ability: ValgrindAbility, root: Path = Path("/")) -> Iterator[Check]:
    """What the probe's answers mean. `root` is read for the distribution."""
    return judge_rows(_TABLE, "valgrind", ability, {"install": install_line("valgrind", root)})
