"""How perf stat is called: the one place where its flags stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from profkit.profilers.perf.events import is_system_wide

# perf obeys the user's locale: a decimal comma makes its CSV and JSON ambiguous. C and not C.UTF-8, which old
# systems lack; Python runs in UTF-8 mode under C.
STAT_ENV: Mapping[str, str] = {"LC_ALL": "C"}
# A raw event holds commas (cpu/event=0x29,umask=0x7/) and no bar.
SEPARATOR = "|"


def stat_argv(
    workload: Sequence[str],
    output: Path | str,
    events: Sequence[str],
    *,
    control: Path | str | None = None,
    ack: Path | str | None = None,
    perf: str = "perf",
    system_wide: bool = False,
) -> tuple[str, ...]:
    """The command that counts `events` of `workload` into `output`; run it with STAT_ENV on top.

    With `control` (and `ack`) perf starts switched off and the workload's region switches it through these
    two pipes. Events of memory controllers and shared caches belong to no process: with one of them, or with
    `system_wide`, the whole machine is counted. `workload` is best wrapped by `status_wrapper`, since perf
    hides how it ended.
    CSV and not JSON, since perf before 6.1 has no JSON and some later ones write it invalid.
    """
    if not events:
        raise ValueError("perf stat without events would count its own choice of them")
    argv = [perf, "stat", "-x", SEPARATOR, "-o", str(output)]
    if system_wide or any(is_system_wide(event) for event in events):
        argv.append("-a")
    for event in events:
        argv += ["-e", event]
    if control is not None:
        pipes = str(control) if ack is None else f"{control},{ack}"
        argv += ["-D", "-1", "--control", f"fifo:{pipes}"]
    return (*argv, "--", *workload)


def events_of(argv: Sequence[str]) -> tuple[str, ...]:
    """The events that a command made by `stat_argv` asks for, as they were written."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    return tuple(event for option, event in pairwise(own) if option == "-e")
