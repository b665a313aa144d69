"""Who else has a hand on the GPU: a part of a device, Windows around it, a service that samples its counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.types import Check, Gpu
from profkit.hardware import tree

# Processes by their name in the kernel (15 characters at most) that hold or may hold the counters, and how to let go.
_HOLDERS = {
    "nv-hostengine": (
        "DCGM",
        "dcgmi profile --pause   (afterwards: dcgmi profile --resume)",
    ),
    "dcgm-exporter": (
        "DCGM's exporter",
        "take the exporter off this node while you measure, or: dcgmi profile --pause",
    ),
    "dynolog": ("dynolog", "dyno dcgm_profiling --mute=true --duration=300"),
    "ncu": ("another ncu", "wait until it ends"),
    "nv-nsight-cu-cl": ("another ncu", "wait until it ends"),
}


def sharing_checks(gpus: Sequence[Gpu]) -> Iterator[Check]:
    """What a device that is not wholly this system's own cannot do."""
    if any(gpu.mig for gpu in gpus):
        detail = (
            "a part of a GPU (MIG): counters of what the parts share (DRAM, L2) can be read only where the compute "
            "instance is the only one in its GPU instance; elsewhere those readings are unavailable"
        )
        yield Check("MIG", "limited", detail, "nvidia-smi mig -lgi; nvidia-smi mig -lci")
    if any(gpu.virtual == "wsl" for gpu in gpus):
        detail = "Windows' driver decides who may count"
        fix = "NVIDIA Control Panel > Developer > Manage GPU Performance Counters > Allow access to all users"
        yield Check("WSL", "limited", detail, fix)
    if any(gpu.virtual == "vgpu" for gpu in gpus):
        detail = "a virtual GPU: the host decides whether its counters can be read"
        yield Check("vGPU", "limited", detail, "on the host: enable_profiling=1 for this vGPU")


def holder_checks(root: Path = Path("/")) -> Iterator[Check]:
    """Processes that may hold the counters. They are only named: stopping a service is its owner's business.

    A container sees its own processes alone, so a service of the host shows only in what ncu says.
    """
    for name in running(root):
        who, fix = _HOLDERS[name]
        detail = f"{who} runs ({name}): while it samples, ncu says that a driver resource was unavailable"
        yield Check("other profilers", "limited", detail, fix)


def running(root: Path = Path("/")) -> tuple[str, ...]:
    """The known holders among the processes, each once, in alphabetical order."""
    try:
        folders = [folder.name for folder in (root / "proc").iterdir() if folder.name.isdigit()]
    except OSError:
        return ()
    names = {tree.read_text(root, f"proc/{pid}/comm") for pid in folders}
    return tuple(sorted(name for name in names if name in _HOLDERS))
