"""What a call of torch is given that the shapes of its tensors do not tell, as text for the range around the call.

Of a convolution how its windows lie, and whose gradients are needed; of attention whether a query sees only
the keys before it. The names of the values are those of the arguments of ATen's operations.

Of matrices of whole numbers on their way to the device it is counted how many of their last columns are padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_TRANSPOSED = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
_ATTENTION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def values_text(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return `stride=[2, 2];padding=[1, 1];...` of a call of a function of torch; empty where nothing is to tell."""
    read = _READERS.get(name)
    found = read(name, args, kwargs) if read is not None else None
    return ";".join(f"{key}={value}" for key, value in (found or {}).items())


def _convolution(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, object] | None:
    transposed = "transpose" in name
    given = {**dict(zip(_TRANSPOSED if transposed else _CONVOLUTION, args, strict=False)), **kwargs}
    count = int(name[-2])  # dimensions: `conv2d`

    def numbers(key: str, default: int) -> list[int] | None:
        value = given.get(key, default)
        if isinstance(value, int):
            return [value] * count
        return list(value) * (count if len(value) == 1 else 1)

    stride, dilation = numbers("stride", 1), numbers("dilation", 1)
    padding = _same(given, dilation) if isinstance(given.get("padding"), str) else numbers("padding", 0)
    if padding is None:
        return None
    gradients = [bool(getattr(given.get(key), "requires_grad", False)) for key in ("input", "weight", "bias")]
    return {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "output_padding": numbers("output_padding", 0),
        "groups": int(given.get("groups", 1)),
        "transposed": transposed,
        "output_mask": gradients,
    }


def _same(given: Mapping[str, Any], dilation: Sequence[int] | None) -> list[int] | None:
    """Return the padding of a name; None where the two sides of `same` differ, and torch pads before."""
    kernel = list(given["weight"].shape[2:])
    if given["padding"] == "valid":
        return [0] * len(kernel)
    whole = [step * (size - 1) for step, size in zip(dilation or (), kernel, strict=True)]
    return [padding // 2 for padding in whole] if not any(padding % 2 for padding in whole) else None


def _attention(_: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, object]:
    given = {**dict(zip(_ATTENTION, args, strict=False)), **kwargs}
    return {"is_causal": bool(given.get("is_causal", False))}


def _heads(_: str, __: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, object]:
    """Return the values of `multi_head_attention_forward`, which drops a causal mask unless it needs one otherwise."""
    needs = kwargs.get("need_weights", True) or kwargs.get("key_padding_mask") is not None
    return {"is_causal": bool(kwargs.get("is_causal", False)) and not needs}


_Reader = Callable[[str, Sequence[Any], Mapping[str, Any]], "dict[str, object] | None"]
_READERS: dict[str, _Reader] = {
    **{f"conv{kind}{count}d": _convolution for kind in ("", "_transpose") for count in (1, 2, 3)},
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _heads,
}


MOVES = ("to", "cuda")  # methods of a tensor that bring it to the device
MIN_COLUMNS, MAX_ELEMENTS = 16, 1 << 20  # of a matrix that is looked at
ALL, THEN = 1000, 16  # matrices of a line that are looked at, and of how many one is after these
MAX_LINES = 10


class PaddedColumns:
    """Counts the columns that hold padding alone, in the matrices of token ids that a program brings to its device.

    Padding is one value at the end of each row. A batch that was padded to its own longest row has no such column.
    """

    def __init__(self) -> None:
        # line -> looks, columns, columns of padding alone
        self._seen: dict[tuple[str, int, str], list[int]] = {}
        self._calls: dict[tuple[str, int, str], int] = {}

    def look(
        self, torch: Any, name: str, args: Sequence[Any], place: Callable[[], tuple[str, int, str]]
    ) -> None:
        """Look at the matrix that a call moves to the device; `place` gives the line that does it."""
        if name not in MOVES or not args or type(args[0]) is not torch.Tensor:
            return
        matrix = args[0]
        if matrix.device.type != "cpu" or matrix.dtype not in (torch.int64, torch.int32) or matrix.dim() != 2:
            return
        if matrix.shape[1] < MIN_COLUMNS or not 0 < matrix.numel() <= MAX_ELEMENTS:
            return
        with suppress(Exception):
            line = place()
            self._calls[line] = calls = self._calls.get(line, 0) + 1
            if calls > ALL and calls % THEN:
                return
            seen = self._seen.setdefault(line, [0, 0, 0])
            same = (matrix == matrix[:1, -1:]).all(0)  # of each column
            used = int(same.logical_not().nonzero().max()) + 1 if not bool(same.all()) else matrix.shape[1]
            seen[0] += 1
            seen[1] += matrix.shape[1]
            seen[2] += matrix.shape[1] - used

    def rows(self) -> list[list[object]]:
        """Return lines that bring padding to the device: place, looks, columns, padding columns; most first."""
        ranked = sorted(self._seen.items(), key=lambda item: -item[1][2])
        return [[*place, *counts] for place, counts in ranked[:MAX_LINES] if counts[2]]
