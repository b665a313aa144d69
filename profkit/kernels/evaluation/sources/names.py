"""Names of operations: from a folder, a file or a person to the overloads that PyTorch knows.

What an operation is, for whoever is to write a kernel of it: schema, documentation, reference code of PyTorch.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from profkit.core.errors import UsageError

_PREFIXES = ("torch.ops.aten.", "aten::", "aten.")
# Bare names whose most called overload, by the operator traces of tritonbench, is neither `default` nor `Tensor`.
_MOST_CALLED = {
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne", "fmod", "remainder", "rsub"), "Scalar"),
    **dict.fromkeys(("masked_fill", "masked_fill_"), "Scalar"),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), "correction"),
    "mean": "dim",
    "pow": "Tensor_Scalar",
    "sum": "dim_IntList",
    "unbind": "int",
    "where": "self",
}


@dataclass(frozen=True)
class Named:
    """What a name means: one overload (`add.Tensor`), or all of an operation (`add`; then `overload` is empty)."""

    operation: str
    overload: str = ""

    @property
    def name(self) -> str:
        """As torch writes it: `add.Tensor`; `add` for all overloads."""
        return f"{self.operation}.{self.overload}" if self.overload else self.operation

    @property
    def main(self) -> str:
        """The one overload that a kernel of this name is for: of a bare name the one that is called most."""
        return f"{self.operation}.{self.overload or main_overload(self.operation)}"


@cache
def known_overloads() -> Mapping[str, tuple[str, ...]]:
    """Every operation of aten that PyTorch dispatches, and its overloads: `add` has `Tensor`, `Scalar` and `out`."""
    import torch

    known: dict[str, list[str]] = {}
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if name.startswith("aten::"):
            operation, _, overload = name.removeprefix("aten::").partition(".")
            known.setdefault(operation, []).append(overload or "default")
    return {operation: tuple(overloads) for operation, overloads in known.items()}


@cache
def _encoded() -> Mapping[str, Named]:
    """Every name that a folder can have. A name is looked up here, never decoded: `__lshift__.Scalar` cannot be."""
    names = {operation: Named(operation) for operation in known_overloads()}
    for operation, overloads in known_overloads().items():
        for overload in overloads:
            names[encode_name(f"{operation}.{overload}")] = Named(operation, overload)
    return names


def encode_name(name: str) -> str:
    """The folder of an overload, and how its function's name begins: `add_.Tensor` is `add___Tensor`."""
    return name.replace(".", "__")


def folder_meaning(folder: str) -> Named | None:
    """The overload or operation that a folder is named after; None for no operation's."""
    return _encoded().get(folder)


def name_meaning(name: str) -> Named:
    """What somebody means by `aten::add.Tensor`, `add.Tensor`, `add__Tensor` or `add`.

    Raises UsageError with near names for what PyTorch does not have.
    """
    name = without_prefix(name)
    meaning = _encoded().get(encode_name(name))
    if meaning is None:
        raise UsageError(
            f"PyTorch has no operation called {name!r}{near_names(name)}",
            "a name as torch.ops.aten has it: add.Tensor",
        )
    return meaning


def without_prefix(name: str) -> str:
    """The name without `torch.ops.aten.`, `aten::` or `aten.` before it."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def function_stems(meaning: Named) -> tuple[str, ...]:
    """How the name of its kernel may begin, the whole name first: `add__Tensor`, `add`; the same for `add`."""
    return tuple(dict.fromkeys((encode_name(meaning.name), encode_name(meaning.main), meaning.operation)))


def operation_name(op: Any) -> str:
    """The overload of aten that an operation of torch's, or a name, means (`add.Tensor`).

    Raises UsageError for what is none of aten.
    """
    import torch

    if isinstance(op, torch._ops.OpOverload):
        op = f"{op._schema.name}.{op._overloadname}"
    elif isinstance(op, torch._ops.OpOverloadPacket):
        op = op._qualified_op_name
    if not isinstance(op, str):
        raise UsageError(f"{op!r:.80} is no operation", "torch.ops.aten.relu.default, or its name")
    return name_meaning(op).main


def near_names(name: str) -> str:
    """` (near: glu, gelu)`: up to three known names like it, written as it is: with dots or encoded; or nothing."""
    known: Iterable[str] = _encoded()
    if "." in name:
        known = [meaning.name for meaning in _encoded().values()]
    near = difflib.get_close_matches(name, known, 3, 0.7)
    return f" (near: {', '.join(near)})" if near else ""


def find_operator(name: str) -> Any:
    """torch's own object of an overload (`add.Tensor`). Raises KeyError for what it does not have."""
    import torch

    operation, _, overload = name.partition(".")
    if (overload := overload or "default") not in known_overloads().get(operation, ()):
        raise KeyError(name)
    return getattr(getattr(torch.ops.aten, operation), overload)


@cache
def main_overload(operation: str) -> str:
    """The overload of a bare name that programs call most: `relu` is `relu.default`, `add` is `add.Tensor`."""
    overloads = known_overloads()[operation]
    wanted = (_MOST_CALLED.get(operation, "default"), "default", "Tensor", *overloads)
    return next(overload for overload in wanted if overload in overloads)


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
