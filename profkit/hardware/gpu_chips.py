"""Which chip a device has, and how many CUDA cores an SM of it holds.

PCI device numbers are given to chips in blocks. The blocks are read off the PCI ID database (pci-ids.ucw.cz, 2026-08);
the names are those by which Nsight Compute knows the chips (`ncu --list-chips`).
"""

from __future__ import annotations

from bisect import bisect_right

_BLOCKS: tuple[tuple[int, int, str], ...] = (  # first and last number
    (0x15F0, 0x15FF, "GP100"),
    (0x1D80, 0x1DFF, "GV100"),
    (0x1E00, 0x1E7F, "TU102"),
    (0x1E80, 0x1EFF, "TU104"),
    (0x1F00, 0x1F7F, "TU106"),
    (0x1F80, 0x1FFF, "TU117"),
    (0x2080, 0x20FF, "GA100"),
    (0x2180, 0x21FF, "TU116"),
    (0x2200, 0x227F, "GA102"),
    (0x2300, 0x23FF, "GH100"),
    (0x2400, 0x247F, "GA103"),
    (0x2480, 0x24FF, "GA104"),
    (0x2500, 0x257F, "GA106"),
    (0x2580, 0x25FF, "GA107"),
    (0x2680, 0x26FF, "AD102"),
    (0x2700, 0x277F, "AD103"),
    (0x2780, 0x27FF, "AD104"),
    (0x2800, 0x287F, "AD106"),
    (0x2880, 0x28FF, "AD107"),
    (0x2900, 0x297F, "GB100"),
    (0x2980, 0x29FF, "GB102"),
    (0x2B00, 0x2B7F, "GB10B"),
    (0x2B80, 0x2BFF, "GB202"),
    (0x2C00, 0x2C7F, "GB203"),
    (0x2D00, 0x2D7F, "GB206"),
    (0x2D80, 0x2DFF, "GB207"),
    (0x2E00, 0x2E7F, "GB20B"),
    (0x2F00, 0x2F7F, "GB205"),
    (0x3180, 0x31FF, "GB110"),
    (0x3200, 0x327F, "GB112"),
)
# Where a capability has one chip only; 7.5, 8.6, 8.9 and 12.0 have several.
_ONLY = {
    "6.0": "GP100",
    "7.0": "GV100",
    "8.0": "GA100",
    "8.7": "GA10B",
    "9.0": "GH100",
    "10.1": "GB10B",
    "11.0": "GB10B",
    "12.1": "GB20B",
}
# FP32 units of an SM by capability (CUDA C++ programming guide, "Arithmetic instructions"); from 9.0 on always 128.
_CORES = {"6.0": 64, "6.1": 128, "7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128}


def chip_of(pci_device: int | None, capability: str | None) -> str | None:
    """`GH100` for PCI device 0x2335, else by the capability where that has one chip only; None if neither tells."""
    if pci_device is not None:
        place = bisect_right(_BLOCKS, (pci_device, 0x10000, "")) - 1
        if place >= 0 and _BLOCKS[place][0] <= pci_device <= _BLOCKS[place][1]:
            return _BLOCKS[place][2]
    return _ONLY.get(capability or "")


def multiprocessors_of(cores: int | None, capability: str | None) -> int | None:
    """SMs of a device with so many CUDA cores; None where that does not come out even."""
    if cores is None or capability is None or not capability.partition(".")[0].isdecimal():
        return None
    each = _CORES.get(capability) or (128 if int(capability.partition(".")[0]) >= 9 else None)
    return cores // each if each and cores and cores % each == 0 else None
