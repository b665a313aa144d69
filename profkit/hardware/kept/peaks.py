"""Measured peaks that are kept for a day: measuring takes seconds, and the machine's limits stay until it starts anew.

Kept in the user's cache folder, for one start of one machine (Linux' boot id) and one numpy. Elsewhere nothing is kept.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path

from profkit.core.codec import to_plain_data
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import Machine, Peaks
from profkit.core.whole_files import user_cache, write_whole
from profkit.hardware.peaks import SCHEMA, read_peaks

KEPT_SECONDS = 86_400.0
FILE_NAME = "peaks.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def kept_peaks(machine: Machine) -> Peaks | None:
    """What was measured here in the last 24 hours; None where nothing was, or on another machine."""
    identity, folder = _identity(machine), user_cache("peaks")
    if identity is None or folder is None:
        return None
    try:
        kept = json.loads(read_bounded_text(folder / FILE_NAME))
        age = time.time() - kept["measured"]
        if kept["machine"] != identity or not 0 <= age < KEPT_SECONDS:
            return None
        peaks = read_peaks(json.dumps(kept["peaks"]))
    except (OSError, ValueError, KeyError, TypeError, ProfkitError):
        return None
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept["measured"]))
    return replace(peaks, method=f"{peaks.method}; measured {when}")


def keep_peaks(machine: Machine, peaks: Peaks) -> None:
    """Keep them for the next runs, where that is possible. Only for what a quiet machine reached."""
    identity, folder = _identity(machine), user_cache("peaks")
    if identity is None or folder is None or None in (peaks.bandwidth_all, peaks.flops_f32_all):
        return
    document = {
        "machine": identity,
        "measured": time.time(),
        "peaks": {"schema": SCHEMA, **asdict(peaks)},
    }
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FILE_NAME, [json.dumps(document)])


def _identity(machine: Machine) -> str | None:
    """What must be the same for a peak to hold; None where the machine's start or numpy is not known."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
        numpy = metadata.version("numpy")
    except (OSError, ValueError, metadata.PackageNotFoundError):
        return None
    plain = json.dumps([machine.cpu, machine.cores, machine.governor, to_plain_data(machine.caches)])
    return f"{boot} {numpy} {sys.executable} {plain}"
