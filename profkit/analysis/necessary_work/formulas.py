"""What operations of ATen need at least: FLOP and bytes by their arguments. Each formula names its source.

A multiply-add is two FLOP. Bytes are those of each input element that has to be read, once, and of each output element,
written once, in the type that it has in memory; a broadcast input counts at its own size. What nested operations do
(the zeros that a gradient is added to) is theirs. Where something is not known, the least that it can be counts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from profkit.analysis.necessary_work.calls import OperationCall, Tensor
from profkit.analysis.necessary_work.convolutions import CONVOLUTIONS
from profkit.analysis.necessary_work.elements import ELEMENTS
from profkit.analysis.necessary_work.layers import LAYERS
from profkit.analysis.necessary_work.products import PRODUCTS
from profkit.analysis.necessary_work.work import NecessaryWork, WorkFormula

TABLE: tuple[WorkFormula, ...] = (*PRODUCTS, *CONVOLUTIONS, *ELEMENTS, *LAYERS)
FORMULAS: dict[str, WorkFormula] = {name: formula for formula in TABLE for name in formula.names}


@lru_cache(maxsize=1 << 14)
def necessary_work(call: OperationCall, unknown: str | None = None) -> NecessaryWork | None:
    """Return the least work of a call; None where its operation or its shapes are not known.

    `unknown` is the type of tensors whose own was not recorded.
    """
    formula = FORMULAS.get(call.name)
    return formula.rule(call.with_type(unknown)) if formula is not None else None


def with_given(call: OperationCall, given: str) -> OperationCall:
    """Return the call with the values in a text: `stride=[2, 2];groups=32`, by the names of arguments.

    A convolution over one dimension is carried out as one over two: values of fewer dimensions than it has are those
    of the last ones.
    """
    formula = FORMULAS.get(call.name)
    values = _values(given)
    if formula is None or not formula.places or not formula.places.keys() <= values.keys():
        return call
    arguments = list(call.arguments)
    arguments += [None] * (max(formula.places.values()) + 1 - len(arguments))
    data = next((argument for argument in arguments if isinstance(argument, Tensor)), None)
    for name, place in formula.places.items():
        missing = len(data.shape) - 2 - values[name].count(",") - 1 if data is not None else 0
        first = f"{_NEUTRAL[name]}, " * max(0, missing) if name in _NEUTRAL else ""
        arguments[place] = values[name].replace("[", f"[{first}", 1)
    return replace(call, arguments=tuple(arguments), has_values=True)


_NEUTRAL = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0}  # of a dimension of size 1


def operation_form(call: OperationCall, given: str) -> str:
    """Return `stride 2 groups 32`, `causal`: what sets a call apart from the usual one; empty where nothing does."""
    formula = FORMULAS.get(call.name)
    values = _values(given) if formula is not None and formula.places else {}
    if formula is None or not formula.places.keys() <= values.keys():
        return ""
    if values.get("is_causal") == "True":
        return "causal"
    parts = []
    for name, usual in (("stride", 1), ("dilation", 1), ("groups", 1)):
        numbers = re.findall(r"\d+", values.get(name, ""))
        if any(number != str(usual) for number in numbers):
            parts.append(f"{name} {numbers[0] if len(set(numbers)) == 1 else 'x'.join(numbers)}")
    return " ".join(parts)


def _values(given: str) -> dict[str, str]:
    return {name: value for name, _, value in (entry.partition("=") for entry in given.split(";")) if value}
