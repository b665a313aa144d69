"""What an operation is, for whoever is to write a kernel of it: schema, documentation, reference code of PyTorch."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from profkit.kernels.evaluation.sources.names import find_operator, main_overload

MOST_TEXT = 3000  # characters of documentation
MOST_LINES = 60  # of reference code


@dataclass(frozen=True)
class OperationDescription:
    """One overload. `main`: a bare name means it (`add` is `add.Tensor`).

    `documentation`: that of the public function of its name; `decomposition`: PyTorch's own Python code of it by
    simpler operations, where there is a short one. Both are empty where there is none.
    """

    name: str
    schema: str
    main: bool = False
    documentation: str = ""
    decomposition: str = ""


def describe_operation(name: str) -> OperationDescription:
    """What PyTorch says of an overload (`add.Tensor`). Raises KeyError for what is none."""
    operation = find_operator(name)
    base, _, overload = name.partition(".")
    return OperationDescription(
        name,
        str(operation._schema),
        main_overload(base) == overload,
        _documentation(base),
        _decomposition(operation),
    )


def _documentation(base: str) -> str:
    """The text of the public function; of `_softmax` that of `softmax`, of `native_layer_norm` that of `layer_norm`."""
    import torch

    for name in dict.fromkeys((base, base.strip("_"), base.removeprefix("native_"))):
        for home in (torch.nn.functional, torch, torch.Tensor, torch.special, torch.linalg):
            text = inspect.getdoc(getattr(home, name, None)) if hasattr(home, name) else None
            if text:
                return _plain(text)
    return ""


def _plain(text: str) -> str:
    """Without the examples, which show values and no rules, and without more than a prompt needs."""
    text = re.split(r"\n\s*Examples?::?\s*\n", text)[0]
    text = re.sub(r":(?:attr|class|func|meth|math|ref|mod):`~?([^`]*)`", r"\1", text)
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT].rpartition("\n")[0] + "\n..."


def _decomposition(operation: Any) -> str:
    from torch._decomp import decomposition_table

    function = decomposition_table.get(operation)
    try:
        code = inspect.getsource(inspect.unwrap(function)) if function is not None else ""
    except (OSError, TypeError):
        return ""
    return code if code.count("\n") <= MOST_LINES else ""
