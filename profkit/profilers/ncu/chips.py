"""What `device__attribute_chip` means: NVIDIA's chip ids, by the name under which documentation speaks of them."""

from __future__ import annotations

# NV_PMC_BOOT_0 architecture and implementation, as NVIDIA's open kernel modules and nouveau list them.
_CHIPS = {
    0x130: "GP100",
    0x132: "GP102",
    0x134: "GP104",
    0x136: "GP106",
    0x137: "GP107",
    0x138: "GP108",
    0x140: "GV100",
    0x162: "TU102",
    0x164: "TU104",
    0x166: "TU106",
    0x167: "TU117",
    0x168: "TU116",
    0x170: "GA100",
    0x172: "GA102",
    0x173: "GA103",
    0x174: "GA104",
    0x176: "GA106",
    0x177: "GA107",
    0x17B: "GA10B",
    0x192: "AD102",
    0x193: "AD103",
    0x194: "AD104",
    0x196: "AD106",
    0x197: "AD107",
    0x180: "GH100",
    0x1A0: "GB100",
    0x1A2: "GB102",
    0x1B2: "GB202",
    0x1B3: "GB203",
    0x1B5: "GB205",
    0x1B6: "GB206",
    0x1B7: "GB207",
}


def chip_name(number: int | None) -> str | None:
    """`GH100` for 384; None for a chip that is not in the list."""
    return None if number is None else _CHIPS.get(number)
