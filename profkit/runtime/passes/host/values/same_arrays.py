"""For how long a name has held the same array with the same numbers: what is copied to a device again and again.

Looked at are arrays and tensors of exactly NumPy's and torch's own types, in the host's memory. As in `values`, no code
of the program runs for it, and no content leaves the process: a few numbers are compared with those of the look before.
"""

from __future__ import annotations

import sys
from time import perf_counter
from weakref import ref

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from typing import Any

SAME = " [same]"  # behind the name of an array: for how many milliseconds it was seen to be the same
LARGE = 1 << 16  # elements: of smaller ones the calls take the time, and not the bytes
FEW = 32  # numbers of an array that are compared
MOST = 24  # names


class SameArrays:
    """Compares what names of a function hold from look to look."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        # Name -> a weak reference, what was seen of its numbers, and when first; None once it was another, or changed.
        self._seen: dict[str, tuple[Any, object, float] | None] = {}

    def note(self, name: str, value: object, types: dict[str, list[Any]]) -> None:
        """Write beside a name's type for how long it has held this array with these numbers, if it has."""
        held = self._look(name, value)
        types.pop(name + SAME, None)
        if held is not None:
            types[name + SAME] = ["ms", held, -1]

    def _look(self, name: str, value: object) -> int | None:
        """Return the milliseconds since which a name has held this array with these numbers; None: it has not."""
        content = _content_of(value)
        if name not in self._seen and content is not None and len(self._seen) < MOST:
            self._seen[name] = ref(value), content, perf_counter()
            return None
        known = self._seen.get(name)
        if known is None:
            return None
        if known[0]() is not value or known[1] != content:
            self._seen[name] = None
            return None
        return int(1000 * (perf_counter() - known[2]))


def _content_of(value: Any) -> object:
    """Return what tells that an array of the host was written to; None of any other value, or a small one."""
    try:
        if type(value) is getattr(sys.modules.get("torch"), "Tensor", None):
            if value.device.type != "cpu" or value.numel() < LARGE or not value.is_contiguous():
                return None
            few = value.detach().reshape(-1)[:: value.numel() // FEW | 1][:FEW]
            return 0 if value.is_inference() else value._version, repr(few.tolist())
        if type(value) is getattr(sys.modules.get("numpy"), "ndarray", None):
            if value.size < LARGE or not value.flags.c_contiguous or value.dtype.hasobject:
                return None
            return value.reshape(-1)[:: value.size // FEW | 1][:FEW].tobytes()
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):  # sparse, quantised, of a subclass
        return None
    return None
