"""What operations of ATen need at least: FLOP and bytes by their arguments. Each formula names its source.

A multiply-add is two FLOP. Bytes are those of each input element that has to be read, once, and of each output element,
written once, in the type that it has in memory; a broadcast input counts at its own size. What nested operations do
(the zeros that a gradient is added to) is theirs. Where something is not told, the least that it can be counts.
"""

from __future__ import annotations

from functools import lru_cache

from profkit.analysis.necessary_work.calls import OperationCall
from profkit.analysis.necessary_work.convolutions import CONVOLUTIONS
from profkit.analysis.necessary_work.elements import ELEMENTS
from profkit.analysis.necessary_work.layers import LAYERS
from profkit.analysis.necessary_work.products import PRODUCTS
from profkit.analysis.necessary_work.work import NecessaryWork, WorkFormula

TABLE: tuple[WorkFormula, ...] = (*PRODUCTS, *CONVOLUTIONS, *ELEMENTS, *LAYERS)
FORMULAS: dict[str, WorkFormula] = {name: one for one in TABLE for name in one.names}


@lru_cache(maxsize=1 << 14)
def necessary_work(call: OperationCall, unknown: str | None = None) -> NecessaryWork | None:
    """Return the least work of a call; None where its operation or its shapes are not known.

    `unknown` is the type of tensors whose own was not recorded.
    """
    formula = FORMULAS.get(call.name)
    return formula.rule(call.with_type(unknown)) if formula is not None else None
