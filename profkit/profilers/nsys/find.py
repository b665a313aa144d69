"""Where nsys is."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.programs import find_tool

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
    """The nsys to call: `PROFKIT_NSYS` where set, else that of PATH, of this environment, or NVIDIA's newest here."""
    return find_tool("nsys", "PROFKIT_NSYS", patterns=_PLACES, root=root)
