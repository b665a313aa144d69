"""Whether valgrind works here: found, tried with a tiny simulation, and told by the doctor."""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import MachineError, UnreadableReport
from profkit.core.types import Cache, Check, Report, Switch
from profkit.hardware.machine import read_machine
from profkit.hardware.processor import data_cache, instruction_cache
from profkit.profilers.programs import ask_tool, find_tool, install_line
from profkit.profilers.region_trial import counted_events, try_region
from profkit.profilers.valgrind.command import (
    INSTALL,
    callgrind_argv,
    callgrind_outputs,
    explain,
    single_thread_env,
)
from profkit.profilers.valgrind.read import read_callgrind

_ELSEWHERE = ("/usr/local/bin", "/opt/valgrind/bin", "/opt/homebrew/bin")  # not always on a service's PATH


def find_valgrind() -> Path | None:
    """The valgrind to call: `PROFKIT_VALGRIND` where set, else that of PATH, of this environment, or a usual place."""
    return find_tool("valgrind", "PROFKIT_VALGRIND", folders=_ELSEWHERE)


_SECONDS = 60.0  # simulating `true` takes half a second; a busy machine may take many times that
_TINY = Cache(1, 32768, 8)
_ON_A_MAC = "--tool xctrace   (Instruments counts on macOS)"


@dataclass(frozen=True)
class ValgrindAbility:
    """What valgrind can do on this machine. Where `works` is False, `reason` says why, `fix` what to do."""

    works: bool
    path: Path | None = None
    version: str | None = None
    setarch: str | None = None  # a setarch that may take the randomness out of addresses
    reason: str | None = None
    fix: str | None = None


@lru_cache(maxsize=1)
def probe_valgrind() -> ValgrindAbility:
    """Simulate `true` once and read what came of it; the answer is kept for this process."""
    path = find_valgrind()
    if path is None:
        if sys.platform == "darwin":
            return ValgrindAbility(False, reason="valgrind does not run on macOS", fix=_ON_A_MAC)
        return ValgrindAbility(False, reason="valgrind is not installed", fix=INSTALL)
    version = _ask_version(path)
    setarch = _find_setarch()
    if version is None:
        return ValgrindAbility(
            False, path, reason=f"{path} does not say its version", fix=f"reinstall it: {INSTALL}"
        )
    true = shutil.which("true") or "/bin/true"
    with tempfile.TemporaryDirectory(prefix="profkit-probe-") as folder:
        out = Path(folder) / "probe"
        argv = callgrind_argv(
            [true],
            out,
            i1=_TINY,
            d1=_TINY,
            last=Cache(2, 1 << 20, 16),
            region=False,
            instructions=True,
            valgrind=str(path),
            setarch=setarch,
        )
        returncode, text = ask_tool(argv, _SECONDS)
        if returncode != 0:
            fault = explain(text, returncode)
            tail = " ".join(text.split())[-200:]
            reason = fault.reason if fault else f"valgrind ended with {returncode}: {tail}"
            return ValgrindAbility(False, path, version, setarch, reason, fault.fix if fault else None)
        try:
            counted = any(c.value for c in _read_outputs(out).counters)
        except UnreadableReport as error:
            return ValgrindAbility(False, path, version, setarch, error.message, error.fix)
        if not counted:
            return ValgrindAbility(False, path, version, setarch, "callgrind ran, but wrote no counts")
    return ValgrindAbility(True, path, version, setarch)


def _ask_version(path: Path) -> str | None:
    _, text = ask_tool((str(path), "--version"), _SECONDS)
    matched = re.search(r"valgrind-(\S+)", text)
    return matched[1] if matched else None


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
    if ability.works and ability.path is not None:
        yield valgrind_region(str(ability.path))


def valgrind_region(valgrind: str) -> Check:
    """Switch callgrind on and off from inside a workload, by valgrind's client requests."""
    title, rounds = "valgrind region switch", 2_000
    machine = read_machine()
    first = data_cache(machine, 1) or _TINY
    with tempfile.TemporaryDirectory(prefix="profkit-") as name:
        out = Path(name) / "callgrind"
        try:
            report, _ = try_region(
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
            )
        except MachineError as error:
            return Check(title, "refused", error.message, error.fix, valgrind)
    # CPython takes 30 (optimised) to 700 (built without optimisation) instructions for a round of the loop.
    # The work around the region is 60 times as much, and the interpreter's start 10 million more.
    counts = f"{counted_events(report, 'Ir'):.0f} instructions"
    if not 20 * rounds <= counted_events(report, "Ir") <= 2_000 * rounds:
        detail = f"callgrind counted {counts} for {rounds} rounds of a loop: not the region's"
        return Check(title, "refused", detail, path=valgrind)
    detail = f"works: {counts} counted for {rounds} rounds of a loop, and nothing around it"
    return Check(title, "ok", detail, path=valgrind)


def _read_outputs(out: Path) -> Report:
    files = callgrind_outputs(out)
    if not files:
        raise UnreadableReport("callgrind wrote no counts")
    return read_callgrind(*files)


def judge_valgrind(ability: ValgrindAbility, root: Path = Path("/")) -> Iterator[Check]:
    """What the probe's answers mean. `root` is read for the distribution."""
    path = None if ability.path is None else str(ability.path)
    if path is None:
        detail = f"{ability.reason}: without hardware counters there are no cache, branch or SIMD figures"
        yield Check("valgrind", "missing", detail, install_line("valgrind", root) if ability.fix else None)
    elif not ability.works:
        detail = ability.reason or "it does not work"
        yield Check("valgrind", "refused", detail, ability.fix, path, ability.version)
    else:
        yield Check("valgrind", "ok", "simulates a program and counts", path=path, version=ability.version)
        if ability.setarch is None:
            yield Check(
                "repeatable addresses",
                "limited",
                "setarch -R is absent or forbidden: simulated conflict misses vary a little between runs",
                "docker run --security-opt seccomp=unconfined (in a container), or install util-linux",
            )
