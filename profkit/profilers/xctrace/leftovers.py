"""What xctrace leaves in the temporary folder: its raw kernel trace, some 100 MB for each second of a recording.

Seen by others on an M4 with Xcode 26. It is told and not removed: from outside nobody can see whose a file is, and
another recording may be under way.
"""

from __future__ import annotations

import shlex
import tempfile
from contextlib import suppress
from pathlib import Path

from profkit.core.formatting import plural, quantity

PATTERN = "instruments*.ktrace"
WORTH = 50_000_000  # bytes, less than which nobody misses


def leftover_note(since: float) -> str | None:
    """A sentence about raw traces that were written after `since` (seconds since 1970); None where there are none."""
    folder = Path(tempfile.gettempdir())
    sizes = []
    for path in folder.glob(PATTERN):
        with suppress(OSError):
            told = path.stat()
            if told.st_mtime >= since:
                sizes.append(told.st_size)
    if sum(sizes) < WORTH:
        return None
    what = f"{plural(len(sizes), 'raw trace')} of {quantity(sum(sizes), 'B')}"
    return f"xctrace left {what} behind; once none records: rm {shlex.quote(str(folder))}/{PATTERN}"
