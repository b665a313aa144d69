"""Which calls of torch give a result again: of the same tensors, to which nobody wrote in between.

Each tensor that a call returns gets a number, made of the function and of the numbers of what it was given. A tensor of
unknown origin has one of its own for as long as it lives and nobody writes to it. So a number that comes again is a
result that was there before, without a look at any content. Writes that torch does not count (a kernel of the
program's own) would be missed: some results that come again are compared, by a few elements and the sum of all bits.

No tensor is kept alive, and none gets an attribute, which would be saved with it.
"""

from __future__ import annotations

import weakref
from contextlib import suppress

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

LARGE = 1 << 16  # elements of a result: below, the launch takes the time
FEW = 16  # elements of a result that are compared
COMPARISONS = 2  # of one line's results, at first; a warm-up may repeat itself, so that later ones follow
RARER = 4  # how many times as often its results have to come again until the next
# Looks at results of all lines, each of which waits for the device; and those at results that have not come again.
MOST_LOOKS, FIRST_LOOKS = 160, 100
MOST_NUMBERS = 200_000
MOST_PARTS = 256  # of a list that is given: a longer one holds data
MOST_ERRORS = 20
MAX_ROWS = 60
SAMPLED = 2  # the call of which some elements are kept,
TAKEN = (1, 4, 16)  # and which of the results that came again
# Parts of names of functions whose result is not made of what they are given.
_CHANCE = (
    "rand", "normal", "bernoulli", "multinomial", "uniform", "exponential", "geometric", "cauchy", "poisson", "empty",
    "gumbel", "rrelu", "lstm", "gru", "rnn", "binomial", "dirichlet", "_gamma", "fractional",
)  # fmt: skip
# What makes a tensor to write to: that it is made again is meant.
_BUFFERS = ("zeros", "ones", "full", "clone", "new_", "tensor", "contiguous")
_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}  # bytes of an element -> an integer of the same
_SCALARS = frozenset((int, float, bool, str, bytes, type(None), type(...), complex))


class LineResults:
    """What one function of torch, called by one line, was seen to return."""

    __slots__ = ("again", "calls", "compared", "compared_at", "samples", "spoilt")

    def __init__(self) -> None:
        self.calls = self.again = self.compared = 0
        self.compared_at = 0  # how many had come again at the last comparison
        self.spoilt = False  # the same number had other elements, or a result was written to
        self.samples: dict[int, str] = {}  # number of a result -> some of its elements


class RepeatedResults:
    """Numbers the tensors of one thread, and counts for each line how many large results came again."""

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self._torch, self._device = torch, device
        self._kinds = (torch.Tensor, torch.nn.Parameter)  # none of a subclass, which may be anything
        # id -> a tensor, its version and address, its number, and the row that it was counted in
        self._tensors: dict[int, tuple[weakref.ref[Any], tuple[int, int], int, int, LineResults | None]] = {}
        self._seen: set[int] = set()
        self._writes: dict[int, int] = {}  # address of memory -> how many calls wrote to it
        self._fresh = self._looks = 0
        self._rows: dict[tuple[str, str], LineResults] = {}
        self.calls = self.again = 0  # of large results on the device

    def number_of(
        self, function: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> int | None:
        """Return the number of what a call is about to return; None: it is a result of its own."""
        try:
            return self._made_of(function, name, args, kwargs)
        finally:
            if _writes(name) or _writes_otherwise(function, name, args, kwargs):
                self._count_writes((*args, *kwargs.values()))

    def _made_of(
        self, function: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> int | None:
        if any(part in name for part in _CHANCE) or _drops(name, args, kwargs):
            return None
        parts = self._parts((args, tuple(sorted(kwargs.items()))))
        return None if parts is None else hash((id(function), name, parts))

    def _parts(self, value: Any) -> Any:
        """Return what tells one argument from others; None of something that is not known."""
        kind = type(value)
        if kind in self._kinds:
            return self._number(value) if value.layout is self._torch.strided else None
        if kind in _SCALARS:
            return kind.__name__, value
        if kind is tuple or kind is list:
            parts = tuple(map(self._parts, value)) if len(value) <= MOST_PARTS else (None,)
            return None if None in parts else parts
        if isinstance(value, slice):
            return self._parts(("slice", value.start, value.stop, value.step))
        # A type, a device, a layout, a memory format.
        if kind.__module__ == "torch" and not isinstance(value, self._kinds):
            return kind.__name__, str(value)
        return None

    def _is_plain(self, value: Any) -> bool:
        return type(value) in self._kinds and value.layout is self._torch.strided

    def _number(self, tensor: Any) -> int:
        """Return a tensor's number; a new one where it is not known, or where somebody wrote to it."""
        known = self._known(tensor)
        return known if known is not None else self._note_new(tensor)

    def _known(self, tensor: Any) -> int | None:
        known = self._tensors.get(id(tensor))
        if known is None or id(known[0]()) != id(tensor):
            return None
        return known[3] if known[1:3] == (self._version(tensor), tensor.data_ptr()) else None

    def _note_new(self, tensor: Any) -> int:
        self._fresh += 1
        return self._note(tensor, hash(("fresh", self._fresh)))

    def _note(self, tensor: Any, number: int, row: LineResults | None = None) -> int:
        if len(self._tensors) > MOST_NUMBERS:
            self._tensors = {key: one for key, one in self._tensors.items() if one[0]() is not None}
        self._tensors[id(tensor)] = weakref.ref(tensor), self._version(tensor), tensor.data_ptr(), number, row
        return number

    def _version(self, tensor: Any) -> tuple[int, int]:
        """Return how often a tensor was written to: as torch counts, and by calls seen here to its memory.

        torch counts nothing in inference mode, and what is written to `x.data` not for `x`.
        """
        counted = 0 if tensor.is_inference() else int(tensor._version)
        return counted, self._writes.get(tensor.untyped_storage().data_ptr(), 0) if self._writes else 0

    def _count_writes(self, values: Sequence[Any]) -> None:
        """Count a write to the memory of each tensor that a call may write to."""
        for value in values:
            if isinstance(value, (tuple, list)):
                self._count_writes(value)
            elif self._is_plain(value):
                if len(self._writes) > MOST_NUMBERS:
                    self._writes, self._tensors = {}, {}
                memory = value.untyped_storage().data_ptr()
                self._writes[memory] = self._writes.get(memory, 0) + 1

    def note(self, number: int | None, name: str, args: Sequence[Any], result: Any, line: str) -> None:
        """Give a number to what a call returned, and count it for its line if it is large."""
        written = _writes(name)
        if written:
            self._note_writes(args)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for at, tensor in enumerate(results):
            if not self._is_plain(tensor):
                continue
            row = None
            if at == 0 and not written and self._is_counted(tensor, name):
                row = self._rows.setdefault((line, name), LineResults())
                row.calls += 1
                self.calls += 1
            if number is None:
                self._note_new(tensor)
                continue
            if not written and self._known(tensor) is not None:
                continue  # one of the arguments, as it was
            own = hash((number, at))
            if row is not None:
                again = own in self._seen
                row.again += again
                self.again += again
                self._compare(own, tensor, row, again=again)
            self._seen.add(own)
            self._note(tensor, own, row)

    def _is_counted(self, tensor: Any, name: str) -> bool:
        """Return whether it is a large result on the device, and none that is made to be written to."""
        if tensor.device.type != self._device or tensor.numel() < LARGE or len(self._seen) > MOST_NUMBERS:
            return False
        return not any(part in name for part in _BUFFERS)

    def _note_writes(self, args: Sequence[Any]) -> None:
        """Forget the numbers of the tensors that a call wrote to: of a list of them each may be one."""
        for value in args:
            if isinstance(value, (tuple, list)):
                self._note_writes(value)
            elif type(value) in self._kinds:
                known = self._tensors.pop(id(value), None)
                if known is not None and known[4] is not None:
                    known[4].spoilt = True

    def _compare(self, number: int, tensor: Any, row: LineResults, *, again: bool) -> None:
        """Compare some elements of a result with those of the time before: of one number for each line."""
        if row.spoilt or self._looks >= (MOST_LOOKS if again else FIRST_LOOKS):
            return
        if row.compared >= COMPARISONS and row.again < RARER * row.compared_at:
            return
        known = row.samples.get(number)
        # What the second call returned may never come again, or once alone.
        if known is None and row.calls != SAMPLED and not (again and row.again in TAKEN):
            return
        sample = self._some_elements(tensor)
        if sample is not None and known is not None:
            row.compared += 1
            row.compared_at = row.again
            row.spoilt = sample != known
        elif sample is not None:
            row.samples[number] = sample

    def _some_elements(self, tensor: Any) -> str | None:
        """Return a few elements of a result and the sum of all its bits; None while a graph is captured, which must
        not wait. The sum is one of integers, whose order does not matter.
        """
        if tensor.is_cuda and self._torch.cuda.is_current_stream_capturing():
            return None
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        if last < FEW:  # one number, shown as many
            return None
        with self._torch.no_grad():  # in steps through its memory, whatever the order of its dimensions
            step = max(1, last // FEW)
            few = self._torch.as_strided(tensor.detach(), (FEW,), (step,), tensor.storage_offset())
            self._looks += 1
            whole = (
                self._torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor.detach()
            )
            bits = whole.view(getattr(self._torch, _BITS[whole.element_size()]))
            return repr((few.tolist(), bits.sum(dtype=self._torch.int64).item()))

    def rows(self, place: Callable[[str], tuple[str, int, str]]) -> list[list[object]]:
        """Return the lines most of whose large results came again and were equal where they were compared: file, line
        and function, the function of torch, the line's calls, and how many came again; then those of all lines.
        """
        calls: dict[str, list[int]] = {}
        for (line, _), row in self._rows.items():
            of_line = calls.setdefault(line, [0, 0])
            of_line[0] += row.calls
            of_line[1] += row.again
        most = [
            (row.again, [*place(line), name, *calls[line], self.calls, self.again])
            for (line, name), row in self._rows.items()
            if 2 * row.again >= row.calls and row.compared and not row.spoilt
        ]
        return [row for _, row in sorted(most, key=lambda pair: -pair[0])[:MAX_ROWS]]


def _writes(name: str) -> bool:
    """Return whether a function of torch writes to what it is given, as its name tells: `add_`, `__iadd__`."""
    if name.startswith("__"):
        return name == "__setitem__" or (
            name.startswith("__i") and name not in ("__index__", "__int__", "__invert__")
        )
    return name.endswith("_")


def _writes_otherwise(function: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call writes to what it is given though its name does not tell: as `out`, in place, to running
    means in training, or as the schema of an operator says (`add_.Tensor`, one of the program's own).
    """
    if kwargs.get("out") is not None or kwargs.get("inplace"):
        return True
    if "batch_norm" in name and kwargs.get("training", args[5] if len(args) > 5 else False):
        return True
    schema = getattr(function, "_schema", None)
    return bool(getattr(schema, "is_mutable", False))


def _drops(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call may leave out elements by chance, or writes to a tensor that it is given as `out`."""
    if kwargs.get("out") is not None:
        return True
    if "dropout" in name:
        return kwargs.get("training", args[2] if len(args) > 2 else True) is not False
    if name == "multi_head_attention_forward":
        return kwargs.get("training", True) is not False
    return name == "scaled_dot_product_attention" and bool(
        kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
    )


class QuietRepeats:
    """The same, of which no error reaches the program: after some, nothing more is numbered."""

    def __init__(self) -> None:
        self._results: RepeatedResults | None = None
        self._errors = 0

    def before(self, torch: Any, function: Any, name: str, args: Any, kwargs: Any) -> int | None:
        """Return the number of what the main thread's call is about to return."""
        if self._errors > MOST_ERRORS:
            return None
        try:
            self._results = self._results or RepeatedResults(torch)
            return self._results.number_of(function, name, args, kwargs)
        except Exception:  # a tensor of a transformation has no memory
            self._errors += 1
            return None

    def after(self, number: int | None, name: str, args: Any, result: Any, line: str) -> None:
        """Count what it returned."""
        if self._errors > MOST_ERRORS or self._results is None:
            return
        try:
            self._results.note(number, name, args, result, line)
        except Exception:
            self._errors += 1

    def forget(self) -> None:
        """End: torch swaps no tensors to which somebody holds a weak reference."""
        self._errors, self._results = MOST_ERRORS + 1, None

    def rows(self, place: Callable[[str], tuple[str, int, str]]) -> list[list[object]]:
        """Return the rows of what was counted."""
        with suppress(Exception):
            return self._results.rows(place) if self._results is not None else []
        return []
