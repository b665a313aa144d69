"""Where ncu is."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.programs import find_tool

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
    """The ncu to call: `PROFKIT_NCU` where set, else that of PATH, of this environment, or NVIDIA's newest here."""
    return find_tool("ncu", "PROFKIT_NCU", patterns=_PLACES, root=root)
