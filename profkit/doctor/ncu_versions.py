"""Whether an ncu is too new for a driver: then it says `Cuda driver is not compatible with Nsight Compute`, or dies.

Sources: CUDA Toolkit release notes, table "CUDA Toolkit and Corresponding Driver Versions" and the component versions
(Nsight Compute) of each toolkit. What stands here is the driver that each ncu came with; an older one may do, so this
is a doubt that explains a failure, never a failure itself.
"""

from __future__ import annotations

import re

from profkit.errors import Fault

# Nsight Compute -> major version of the driver of the same CUDA Toolkit.
CAME_WITH = {
    (2022, 2): 515,
    (2022, 3): 520,
    (2022, 4): 525,
    (2023, 1): 530,
    (2023, 2): 535,
    (2023, 3): 545,
    (2024, 1): 550,
    (2024, 2): 555,
    (2024, 3): 560,
    (2025, 1): 570,
    (2025, 2): 575,
    (2025, 3): 580,
    (2025, 4): 590,
}


def doubt_of(ncu: str | None, driver: str | None) -> Fault | None:
    """Why this `ncu` may not work with this `driver`; None where the driver is as new, or nothing is known."""
    release = re.match(r"(\d{4})\.(\d+)", ncu or "")
    have = re.match(r"\d+", driver or "")
    if release is None or have is None:
        return None
    key = (int(release[1]), int(release[2]))
    newest = max(CAME_WITH)
    wants = CAME_WITH.get(key) or (CAME_WITH[newest] if key > newest else None)
    if wants is None or int(have[0]) >= wants:
        return None
    fitting = max((one for one, major in CAME_WITH.items() if major <= int(have[0])), default=None)
    older = f"ncu {fitting[0]}.{fitting[1]}, which came with it" if fitting else "an older ncu"
    known = "" if key <= newest else " or a later one"
    return Fault(
        f"ncu {ncu} came with driver {wants}{known}, and the driver here is {driver}: it may not be compatible",
        f"install {older} (PROFKIT_NCU=/path/to/ncu names it), or a newer driver",
    )
