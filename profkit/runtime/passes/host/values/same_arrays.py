"""For how long a name has held the same array with the same numbers: what is copied to a device again and again.

Looked at are arrays and tensors of exactly NumPy's and torch's own types, in the host's memory. As in `values`, no code
of the program runs for it, and no content leaves the process: a few numbers are compared with those of the look before.
"""

from __future__ import annotations

import sys
from time import perf_counter

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
        # Name -> what tells the array and its numbers apart, and when it was seen first; None once it was another, or
        # changed. No weak reference: NumPy resizes no array, and torch swaps no tensor, that has one.
        self._seen: dict[str, tuple[object, float] | None] = {}

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
            self._seen[name] = content, perf_counter()
            return None
        known = self._seen.get(name)
        if known is None:
            return None
        if known[0] != content:
            self._seen[name] = None
            return None
        return int(1000 * (perf_counter() - known[1]))


def owns_its_numbers(array: Any) -> bool:
    """Return whether an array of NumPy, or the one that it is a view of, has its numbers in memory of its own.

    Those of a file, of shared memory, or of another library's buffer may be gone, and reading them ends the program.
    """
    kind = type(array)
    while type(array.base) is kind:
        array = array.base
    return array.base is None and bool(array.flags.owndata)


def _content_of(value: Any) -> object:
    """Return what tells an array of the host and its numbers from others; None of any other value, or a small one."""
    try:
        if type(value) is getattr(sys.modules.get("torch"), "Tensor", None):
            if value.device.type != "cpu" or value.numel() < LARGE or not value.is_contiguous():
                return None
            if value.is_shared() or not value.untyped_storage().resizable():
                return None  # memory of others
            few = value.detach().reshape(-1)[:: value.numel() // FEW | 1][:FEW]
            version = 0 if value.is_inference() else value._version
            return id(value), value.data_ptr(), version, repr(few.tolist())
        if type(value) is getattr(sys.modules.get("numpy"), "ndarray", None):
            if value.size < LARGE or not value.flags.c_contiguous or value.dtype.hasobject:
                return None
            if not owns_its_numbers(value):
                return None
            few = value.reshape(-1)[:: value.size // FEW | 1][:FEW].tobytes()
            return id(value), value.__array_interface__["data"][0], value.size, few
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):  # sparse, quantised, of a subclass
        return None
    return None
