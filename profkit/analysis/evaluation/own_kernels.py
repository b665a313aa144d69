"""How much of a kernel's time on a GPU is its own? By the names of what it launched: a label, never a verdict.

A kernel that calls cuBLAS, cuDNN or PyTorch's own kernels is wrapped, which may be what is wanted; one that launches
a kernel of its own beside them, which takes hardly any time, has a decoy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.kernel_names.owner import OWN_CODE, KernelOwner, kernel_owner, owner_title

DECOY_SHARE = 0.05  # of the time, and less: what else it launches does the work
MIXED_SHARE = 0.5
NAMED_SHARE = 0.05  # of the time: an owner with less is not named
COPIES = ("Memcpy", "Memset")  # as CUPTI calls what the driver copies and fills


@dataclass(frozen=True)
class OwnKernels:
    """The share of the time on the device that was spent in kernels of their author; `remark` is empty for most."""

    share: float
    remark: str = ""


def assess_own_kernels(launched: Sequence[tuple[str, float]]) -> OwnKernels | None:
    """What `launched` says, names with their seconds on the device; None where nothing ran there.

    A library that is compiled from the author's own source (CUTLASS, Inductor) counts as own. Copies are nobody's
    kernels, and count as time.
    """
    total = sum(seconds for _, seconds in launched)
    if total <= 0:
        return None
    by_owner: dict[str, float] = {}
    own_launches = 0
    own_seconds = 0.0
    for name, seconds in launched:
        owner: KernelOwner | None = None if name.startswith(COPIES) else kernel_owner(name)
        title = owner_title(owner) if owner is not None else "copies"
        by_owner[title] = by_owner.get(title, 0.0) + seconds
        if owner in OWN_CODE:
            own_launches += 1
            own_seconds += seconds
    share = own_seconds / total
    own_titles = {owner_title(owner) for owner in OWN_CODE}
    others = ", ".join(
        f"{title} {seconds / total:.0%}"
        for title, seconds in sorted(by_owner.items(), key=lambda each: -each[1])
        if title not in own_titles and seconds >= NAMED_SHARE * total
    )
    if not own_launches:
        return OwnKernels(share, f"it launches no kernel of its own: its time on the GPU is that of {others}")
    if share < DECOY_SHARE:
        return OwnKernels(
            share,
            f"its own kernels take {share:.1%} of its time on the GPU, and others do the work: {others}",
        )
    if share < MIXED_SHARE:
        return OwnKernels(share, f"{share:.0%} of its time on the GPU is in its own kernels; {others}")
    return OwnKernels(share)
