"""An Apple GPU worked in another state: slower clocks by its performance state, heat or low power."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.metal_state import heat, state_of
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where the state that it mostly worked in is another one, or only one run was in a thermal state but Nominal."""
    before, after = state_of(view.baseline), state_of(view.candidate)
    if before is not None and after is not None and before.name != after.name:
        told = f"The GPU worked mostly in the performance state {after.name}, before in {before.name}."
        yield Cause("state", told, evidence=(f"baseline: {before}", f"candidate: {after}"))
    hot = heat(view.baseline), heat(view.candidate)
    for name, told_, other in (("baseline", hot[0], hot[1]), ("candidate", hot[1], hot[0])):
        if told_ is not None and other is None:
            yield Cause("state", f"The {name} was slowed by heat.", evidence=(told_,))
