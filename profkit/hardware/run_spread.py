"""How far runs of an unchanged program lie apart on this machine, learned from the runs that are made anyway.

Each run of a program that was measured here before, and is still the same, adds the logarithm of its time over the
time before, where others took little of either. The last 50 are kept in the user's cache folder, in one file for each
kind of machine. The file holds digests, times and dates: no command, no path, no name. A second machine of the same
kind that shares the folder adds to the same file: its runs may be compared with those of the first, so what lies
between the two counts.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import log, sqrt
from pathlib import Path

from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import user_cache, write_whole
from profkit.core.types import Machine, RunSpread

MOST_TRIALS = 50
MOST_PROGRAMS = 200  # whose last time is kept
MOST_LOST = 0.05  # of its time, to others: what they take is counted for each run by itself
MOST_BYTES = 1 << 20  # 50 trials and 200 programs are 30 kB
_DIGITS = 32  # hexadecimal, of a digest


@dataclass(frozen=True)
class _Kept:
    """`times`: of each program, by its digest, when it was measured last and its seconds; the oldest first.

    `trials`: when, and the logarithm of the ratio.
    """

    times: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    trials: tuple[tuple[float, float], ...] = ()


def kept_spread(machine: Machine) -> RunSpread | None:
    """What is known of this kind of machine; None where no program was measured twice."""
    path = _path_of(machine)
    ratios = [ratio for _, ratio in _read(path).trials] if path is not None else []
    if not ratios:
        return None
    rms = sqrt(sum(ratio * ratio for ratio in ratios) / len(ratios))
    return RunSpread(len(ratios), rms, max(map(abs, ratios)))


def keep_time(machine: Machine, program: str, seconds: float, lost: float = 0.0) -> None:
    """A run of `program` (whatever text says what it is and that it is unchanged) took `seconds`.

    `lost` is the share of its time that others took: a run that lost more than 5 % says nothing of the machine.
    Nothing is kept, and nothing said, where that is not possible.
    """
    path = _path_of(machine)
    if path is None or lost > MOST_LOST or not 0 < seconds < float("inf"):
        return
    kept, now, name = _read(path), time.time(), _digest(program)
    times, trials = dict(kept.times), list(kept.trials)
    before = times.pop(name, None)
    if before is not None and before[1] > 0:
        trials.append((now, log(seconds / before[1])))
    times[name] = (now, seconds)  # last: it is the newest
    document = _Kept(dict(list(times.items())[-MOST_PROGRAMS:]), tuple(trials[-MOST_TRIALS:]))
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [json.dumps(to_plain_data(document))])


def _read(path: Path) -> _Kept:
    """What the file holds; nothing where it cannot be read or anything in it is odd."""
    try:
        kept = from_plain_data(_Kept, json.loads(read_bounded_text(path, MOST_BYTES)), "the spread")
    except (OSError, ValueError, RecursionError, ProfkitError):
        return _Kept()
    return _Kept(dict(list(kept.times.items())[-MOST_PROGRAMS:]), kept.trials[-MOST_TRIALS:])


def _path_of(machine: Machine) -> Path | None:
    folder = user_cache("spread")
    kind = [
        machine.system,
        machine.architecture,
        machine.cpu,
        machine.cores,
        machine.virtual,
        machine.governor,
    ]
    return None if folder is None else folder / f"{_digest(json.dumps(kind))}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
