"""What a call of torch is given that the shapes of its tensors do not tell, as text for the range around the call.

Of a convolution how its windows lie, and whose gradients will be asked for; of attention whether a query sees only
the keys before it. The names of the values are those of the arguments of ATen's operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """The padding of a name; None where the two sides of `same` differ, and torch pads before."""
    kernel = list(given["weight"].shape[2:])
    if given["padding"] == "valid":
        return [0] * len(kernel)
    whole = [step * (size - 1) for step, size in zip(dilation or (), kernel, strict=True)]
    return [one // 2 for one in whole] if not any(one % 2 for one in whole) else None


def _attention(_: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, object]:
    given = {**dict(zip(_ATTENTION, args, strict=False)), **kwargs}
    return {"is_causal": bool(given.get("is_causal", False))}


def _heads(_: str, __: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, object]:
    """Of `multi_head_attention_forward`, which drops a mask that is causal unless it needs one for other reasons."""
    needs = kwargs.get("need_weights", True) or kwargs.get("key_padding_mask") is not None
    return {"is_causal": bool(kwargs.get("is_causal", False)) and not needs}


_Reader = Callable[[str, Sequence[Any], Mapping[str, Any]], "dict[str, object] | None"]
_READERS: dict[str, _Reader] = {
    **{f"conv{kind}{count}d": _convolution for kind in ("", "_transpose") for count in (1, 2, 3)},
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _heads,
}
