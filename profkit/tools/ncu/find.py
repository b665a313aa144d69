"""Where ncu is."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from profkit.tools import places

# Where NVIDIA's packages and the CUDA toolkit put it; sudo's PATH holds none of these.
_PLACES = (
    "usr/local/cuda/bin/ncu",
    "usr/local/cuda-*/bin/ncu",
    "opt/nvidia/nsight-compute/*/ncu",
    "usr/local/NVIDIA-Nsight-Compute*/ncu",
    "usr/local/cuda*/nsight-compute-*/ncu",
)
INSTALL_FIX = (
    "apt-get install cuda-nsight-compute-13-0   (NVIDIA's repository; or developer.nvidia.com/nsight-compute)"
)


def find_ncu(root: Path = Path("/")) -> Path | None:
    """The ncu to call: `PROFKIT_NCU` where set, else the first on PATH, beside this interpreter, or where NVIDIA's
    packages put it (there the newest).
    """
    chosen = os.environ.get("PROFKIT_NCU")
    if chosen:
        found = shutil.which(chosen)
        return None if found is None else Path(found)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(places.BESIDE_PYTHON)])
    if (found := shutil.which("ncu", path=path)) is not None:
        return Path(found)
    for pattern in _PLACES:
        for candidate in sorted(root.glob(pattern), key=_newest, reverse=True):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return candidate
    return None


def _newest(path: Path) -> tuple[int, ...]:
    """The numbers of its path, so that 2025.10 is above 2025.9."""
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))
