"""Where nsys is."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from profkit.tools import places

# Where NVIDIA's packages put it. The one inside Nsight Compute comes last: it lacks libraries it needs for a report.
_PLACES = (
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-systems*/*/bin/nsys",
    "opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "usr/lib/nsight-systems/bin/nsys",
    "opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
)
INSTALL_FIX = (
    "apt-get install nsight-systems-cli   (from NVIDIA's repository; or developer.nvidia.com/nsight-systems)"
)


def find_nsys(root: Path = Path("/")) -> Path | None:
    """The nsys to call: `PROFKIT_NSYS` where set, else the first on PATH, beside this interpreter, or where
    NVIDIA's packages put it (there the newest).
    """
    chosen = os.environ.get("PROFKIT_NSYS")
    if chosen:
        found = shutil.which(chosen)
        return None if found is None else Path(found)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(places.BESIDE_PYTHON)])
    if (found := shutil.which("nsys", path=path)) is not None:
        return Path(found)
    for pattern in _PLACES:
        for candidate in sorted(root.glob(pattern), key=_newest, reverse=True):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return candidate
    return None


def _newest(path: Path) -> tuple[int, ...]:
    """The numbers of its path, so that 2025.10 is above 2025.9."""
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))
