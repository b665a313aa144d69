"""Whether a region really switches an instrument: a tiny workload, most of whose work is outside its region.

If the switch works, the instrument has counted about the region's work; if not, nothing or everything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from profkit.core.errors import Fault, ProfkitError
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import Directive, Report, Switch
from profkit.profilers.programs import try_command

# Much more work outside than inside; plain integers, since no package is sure to be there.
_WORKLOAD = (
    "import profkit\n"
    "def work(steps):\n"
    "    total = 0\n"
    "    for step in range(steps):\n"
    "        total += step * step\n"
    "work({outside})\n"
    "with profkit.region('doctor'):\n"
    "    work({inside})\n"
    "work({outside})\n"
)


@dataclass(frozen=True)
class RegionTrial:
    """What a tool counted of the region, in the event's unit, and the wall seconds of it; or why it did not."""

    counted: float = 0.0
    seconds: float = 0.0
    reason: str | None = None
    fix: str | None = None


def try_region(
    tool: str,
    folder: Path,
    switch: Switch,
    rounds: tuple[int, int],
    argv: Callable[[tuple[str, ...]], tuple[str, ...]],
    env: Mapping[str, str],
    read: Callable[[], Report],
    explain: Callable[[str, int], Fault | None],
    event: str,
) -> RegionTrial:
    """Count one event of a region; `rounds` of a loop are inside and around it, `argv` puts the tool before a workload.

    The trial has a reason where the tool did not run, left nothing, or the region could not switch it.
    """
    directive = Directive("counters", str(folder / "record"), switch)
    # -S and -s leave the user's site packages and start-up files out: a trial of the tool, not of them
    program = _WORKLOAD.format(inside=rounds[0], outside=rounds[1])
    ours = {
        "PROFKIT_DIRECTIVE": json.dumps(asdict(directive)),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PYTHONSAFEPATH": "1",
    }
    trial = try_command(argv((sys.executable, "-S", "-s", "-c", program)), {**env, **ours}, seconds=30.0)
    if not trial.ok:
        ended = Fault(f"{tool} {trial.ending}: {trial.last_line[:160]}")
        fault = explain(trial.output, trial.returncode) or ended
        return RegionTrial(reason=fault.reason, fix=fault.fix)
    try:
        counters = read().counters
        seconds, notes = _read_record(folder)
    except (ProfkitError, OSError) as error:
        return RegionTrial(reason=f"{tool} ran, but its counts are not there: {error}")
    if notes:
        return RegionTrial(reason=f"the region could not switch {tool}: {notes}")
    counted = next((c.value for c in counters if c.name == event and c.scope.kind == "run"), None)
    return RegionTrial(counted or 0.0, seconds)


def _read_record(folder: Path) -> tuple[float, str]:
    """Seconds that the workload itself measured in its region, and what went wrong in it."""
    from profkit.runtime.region.record import decode_record

    records = [decode_record(read_bounded_text(path)) for path in folder.glob("record.*.json")]
    seconds = [sum(region.seconds) for record in records for region in record.regions]
    if not seconds:
        return 0.0, "the workload left no record of its region"
    return sum(seconds), "; ".join(note for record in records for note in record.notes)
