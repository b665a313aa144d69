"""Finds the source of watched calls of a program, and what they call."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from profkit.analysis.function_names import plain_symbol
from profkit.backends.source_lines import source_of_addresses
from profkit.core.process import ask
from profkit.core.types import RegisterFact
from profkit.profilers.perf.registers import CodePlace
from profkit.profilers.perf.watch import WatchReport
from profkit.profilers.perf.watched_facts import watched_facts

_CALLED = re.compile(r"\bcall\w*\s.*<(?:__)?(\w+?)(?:_finite)?@")
SECONDS = 10.0  # for one call
_LONGEST = 15  # bytes of an instruction


def seen_in_calls(program: Path, watched: WatchReport) -> tuple[RegisterFact, ...]:
    """Return what watched calls show, at the places that the samples have as well."""
    addresses = sorted({call.address for call in watched.calls})
    codes = source_of_addresses(program, addresses)
    places = {
        address: CodePlace(code.place.function or "", code.place.file, code.place.line, True)
        if code.place is not None
        else CodePlace(plain_symbol(code.inlined[-1]), None, None, True)
        for address, code in codes.items()
        if code.place is not None or code.inlined
    }
    return watched_facts(watched, places, _called_at(program, addresses))


def _called_at(program: Path, addresses: Iterable[int]) -> dict[int, str]:
    """Return the names of the library's functions that call instructions go to."""
    objdump = shutil.which("objdump")
    names = {}
    for address in addresses if objdump is not None else ():
        limits = (f"--start-address={address}", f"--stop-address={address + _LONGEST}")
        try:
            done = ask((str(objdump), "-d", *limits, str(program)), timeout=SECONDS)
            called = _CALLED.search(done.stdout.decode("utf-8", "replace"))
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        if called is not None:
            names[address] = called[1]
    return names
