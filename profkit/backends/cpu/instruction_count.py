"""How many instructions one run of a command executes: by the processor's counter, else by a simulation without caches.

Of a whole process all its instructions and those of its children, of a program that marks a region those inside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import Directive, Switch
from profkit.profilers.perf.command import stat_argv
from profkit.profilers.perf.probe import probe_perf
from profkit.profilers.perf.stat_csv import read_stat_csv
from profkit.profilers.valgrind.command import callgrind_outputs, instructions_argv, single_thread_env
from profkit.profilers.valgrind.probe import probe_valgrind

EVENT = "instructions:u"
ITERATIONS = 2  # of a marked region, after one to warm up
# Of a plain run's time, measured with Python programs: cachegrind without its caches took 25 times as long, callgrind
# outside of the region 12 times.
_SIMULATED, _COUNTED = 30.0, 1.2
_REFERENCES = re.compile(r"I\s+refs:\s+([\d,]+)")
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class InstructionCounter:
    """What counts here, by its name in reports. `slowdown`: how much longer a counted run takes than a plain one."""

    tool: str
    slowdown: float
    program: str

    def argv(self, command: Sequence[str], out: Path, *, marked: bool) -> tuple[str, ...]:
        """The command that leaves its counts in files that begin with `out`."""
        if self.slowdown == _COUNTED:
            return stat_argv(command, out, [EVENT], perf=self.program)
        return instructions_argv(command, out, marked=marked, valgrind=self.program)

    def environment(self) -> Mapping[str, str]:
        """One thread, and the same order of sets of strings, in every run."""
        return single_thread_env()

    def directive(self, record: Path, *, marked: bool) -> Directive:
        """What a marked region does, as often in every run."""
        simulated = marked and self.slowdown != _COUNTED
        return Directive(
            "counters", str(record), switch=Switch("valgrind") if simulated else None, iterations=ITERATIONS
        )

    def read(self, out: Path, *, marked: bool) -> float | None:
        """The instructions; None where the files do not say."""
        try:
            if self.slowdown == _COUNTED:
                values = [c.value for c in read_stat_csv(out).counters if c.name.startswith("instructions")]
                return values[0] if values else None
            if marked:
                texts = [read_bounded_text(path) for path in callgrind_outputs(out)]
                found = [int(number) for text in texts for number in _TOTALS.findall(text)]
            else:
                texts = [read_bounded_text(path) for path in sorted(out.parent.glob(f"{out.name}.*"))]
                found = [int(m[1].replace(",", "")) for text in texts if (m := _REFERENCES.search(text))]
        except (OSError, UnicodeDecodeError, UnreadableReport):
            return None
        return float(sum(found)) or None


@lru_cache(maxsize=1)
def instruction_counter() -> InstructionCounter | None:
    """The cheapest that works on this machine; None where nothing counts."""
    perf = probe_perf()
    if perf.path is not None and "instructions" in perf.counting:
        return InstructionCounter("perf", _COUNTED, perf.path)
    valgrind = probe_valgrind()
    if valgrind.works and valgrind.path is not None:
        return InstructionCounter("valgrind", _SIMULATED, str(valgrind.path))
    return None
