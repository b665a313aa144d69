"""What a table of contents says in advance: which tables hold nothing worth exporting."""

from __future__ import annotations

from profkit.profilers.xctrace.toc import Run

_OF_GPU = ("gpu-counter", "metal-gpu-counter")
_NONE = "(null)"


def is_pointless(run: Run, schema: str) -> bool:
    """Whether the GPU's counters of a recording that was made without a set of them would be exported.

    Such a recording has none or, on an M3 and later, one that stays 0 in hundreds of thousands of rows. A template of
    somebody's own may count without naming its set, so the number of the profile has to be 0, too.
    """
    if not schema.startswith(_OF_GPU) or run.setting("Counter Set") != _NONE:
        return False
    profiles = {profile for table in run.tables if (profile := table.get("counter-profile")) is not None}
    return profiles == {"0"}
