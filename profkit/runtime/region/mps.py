"""torch's MPS device in the workload's own process: whether it is in use, and waiting for it.

Nothing is imported for it, and nothing on the device is made for it: a process whose torch holds no memory of the
device has launched nothing there, and is left alone. The functions are torch's public ones (`torch.mps`, from torch 2.0
on; without a Mac they raise RuntimeError).

- torch hands its work to Metal late: a command buffer is committed when it is full, or waited for. `synchronize`
  commits and waits, so behind it everything that was launched has run.
- A forked child of a process that used Metal hangs or crashes there (github.com/pytorch/pytorch/pull/178037): it is
  never asked.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def device() -> Any:
    """The module `torch.mps` where this process uses the device, else None."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.backends.mps.is_available():
            return None
        mps = torch.mps
        bad_fork = getattr(mps, "_is_in_bad_fork", None)
        if bad_fork is not None and bad_fork():
            return None
        # the second also counts what torch keeps of tensors that are gone, of which work may still be under way
        used = mps.current_allocated_memory() > 0 or mps.driver_allocated_memory() > 0
    except Exception:  # a torch without MPS, one half imported, or something else of that name
        return None
    return mps if used else None


def could_be_used() -> bool:
    """Whether torch is loaded and could use the device, though it may not have begun to."""
    torch = sys.modules.get("torch")
    try:
        return bool(torch is not None and torch.backends.mps.is_available())
    except Exception:
        return False


class MpsWait:
    """The switch of the timing pass: a region's seconds are those of its work, also of what it left to the device.

    `wait` is called at both ends of every region, nested ones too. Until the process uses the device it does nothing.
    What torch raises of work that failed is the workload's business: it is met there again.
    """

    def __init__(self) -> None:
        self._mps: Any = None
        self._off = False

    def enter(self, name: str) -> None:
        """Nothing is switched."""

    def exit(self, name: str) -> None:
        """Nothing is switched."""

    def wait(self) -> None:
        """Until the device has done what this process gave it."""
        if self._off:
            return
        if self._mps is None:
            self._mps = device()
        if self._mps is not None:
            with contextlib.suppress(Exception):
                self._mps.synchronize()

    def forget(self) -> None:
        """In a forked child: Metal is the parent's."""
        self._off = self._mps is not None
