"""What is started in every Python process of the workload that finds us in its environment, the first one included.

The stacks are sampled in each. A companion is started once the workload has imported the module that it is about.
"""

from __future__ import annotations

import atexit
import os
import sys

from .after_import import call_after_import
from .samples import StackSampler

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

# A module of the workload -> our module and its class, made as `Class(out)`, with `start()` and what a switch may have.
COMPANIONS: dict[str, tuple[str, str]] = {"torch": ("operation_lines", "OperationLines")}


class Switches:
    """Several instruments as the one switch that `profkit.region` calls."""

    def __init__(self) -> None:
        self.members: list[Any] = []

    def enter(self, name: str) -> None:
        """Measure in a region from here."""
        self._call("enter", name)

    def exit(self, name: str) -> None:
        """Until here."""
        self._call("exit", name)

    def iteration(self, index: int) -> None:
        """One iteration inside the region is over."""
        self._call("iteration", index)

    def prepare(self) -> None:
        """Warm-up begins."""
        self._call("prepare")

    def forget(self) -> None:
        """In a forked child: each member sees to that itself, whether there is a region or not."""

    def finish(self) -> None:
        """The process ends."""
        self._call("finish")

    def _call(self, action: str, *arguments: object) -> None:
        for member in self.members:
            method = getattr(member, action, None)
            if method is not None:
                method(*arguments)


def start(out: str) -> None:
    """Sample the stacks of this process and of those that it forks, adding to the file `out`."""
    switches = Switches()
    sys.modules[str(__package__)].switch = switches  # type: ignore[attr-defined]
    sampler = StackSampler(out)
    switches.members.append(sampler)
    for name in COMPANIONS:
        call_after_import(name, _companion_starter(name, out, switches))
    atexit.register(switches.finish)
    os.register_at_fork(after_in_child=sampler.begin)
    sampler.begin()


def _companion_starter(name: str, out: str, switches: Switches) -> Callable[[ModuleType], None]:
    def begin(_: ModuleType) -> None:
        from .own_library import own_library

        module, kind = COMPANIONS[name]
        with own_library:
            companion = getattr(__import__(f"{__package__}.{module}", fromlist=(kind,)), kind)(out)
        switches.members.append(companion)
        companion.start()

    return begin
