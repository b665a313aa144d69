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
_NUMBERS = {"int", "float", "bool", "complex", "Number", "numbers.Number"}


@dataclass(frozen=True)
class Named:
    """What a name means: one overload (`add.Tensor`), or all of an operation (`add`; then `overload` is empty)."""

    operation: str
    overload: str = ""

    @property
    def name(self) -> str:
        """As torch writes it: `add.Tensor`; `add` for all overloads."""
        return f"{self.operation}.{self.overload}" if self.overload else self.operation


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
        near = near_names(name)
        fix = f"near: {', '.join(near)}" if near else "a name as torch.ops.aten has it: add.Tensor"
        raise UsageError(f"PyTorch has no operation called {name!r}", fix)
    return meaning


def without_prefix(name: str) -> str:
    """The name without `torch.ops.aten.`, `aten::` or `aten.` before it."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def function_stems(meaning: Named) -> tuple[str, ...]:
    """How the name of its kernel may begin, the whole name first: `add__Tensor`, `add`; the same for `add`."""
    main = f"{meaning.operation}.{meaning.overload or main_overload(meaning.operation)}"
    return tuple(dict.fromkeys((encode_name(meaning.name), encode_name(main), meaning.operation)))


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
    meaning = name_meaning(op)
    return meaning.name if meaning.overload else f"{meaning.name}.{main_overload(meaning.operation)}"


def near_names(name: str) -> tuple[str, ...]:
    """Up to three known names like it, the nearest first, written as it is: with dots or encoded."""
    known: Iterable[str] = _encoded()
    if "." in name:
        known = [meaning.name for meaning in _encoded().values()]
    return tuple(difflib.get_close_matches(name, known, 3, 0.7))


def describe_unknown(what: str, name: str) -> str:
    """That a name is no operation's, and the names that are near."""
    near = near_names(name)
    return f"{what} is named like no operation of PyTorch" + (f" (near: {', '.join(near)})" if near else "")


def find_operator(name: str) -> Any:
    """torch's own object of an overload (`add.Tensor`). Raises KeyError for what it does not have."""
    import torch

    operation, _, overload = name.partition(".")
    if (overload := overload or "default") not in known_overloads().get(operation, ()):
        raise KeyError(name)
    return getattr(getattr(torch.ops.aten, operation), overload)


@cache
def functional_overloads(operation: str) -> tuple[str, ...]:
    """The overloads that a bare name may mean: none that write to an `out`, none of named dimensions."""
    return tuple(
        overload
        for overload in known_overloads()[operation]
        if not any(
            argument.is_out or "Dimname" in str(argument.type)
            for argument in find_operator(f"{operation}.{overload}")._schema.arguments
        )
    )


@cache
def main_overload(operation: str) -> str:
    """The overload of a bare name that programs call most: `relu` is `relu.default`, `add` is `add.Tensor`."""
    overloads = functional_overloads(operation) or known_overloads()[operation]
    wanted = (_MOST_CALLED.get(operation, "default"), "default", "Tensor", *overloads)
    return next(overload for overload in wanted if overload in overloads)


def overloads_of(meaning: Named, signature: inspect.Signature | None) -> tuple[str, ...]:
    """The overloads (`add.Tensor`) that a function with this signature is a kernel for.

    A whole name is itself. A bare name is every overload whose required arguments the function takes; and the main
    one alone where its signature is not known (None), or leaves that open with `*args`.
    """
    if meaning.overload:
        return (meaning.name,)
    operation = meaning.operation
    main = main_overload(operation)
    fitting = [
        overload
        for overload in functional_overloads(operation)
        if signature is not None
        and takes_arguments(signature, find_operator(f"{operation}.{overload}")._schema)
    ]
    fitting.sort(key=lambda overload: overload != main)
    return tuple(f"{operation}.{overload}" for overload in fitting or [main])


def takes_arguments(signature: inspect.Signature, schema: Any) -> bool:
    """Whether a function takes the required arguments of a schema, by their number, names and annotations."""
    required = [argument for argument in schema.arguments if not argument.has_default_value()]
    try:
        bound = signature.bind(
            *(argument for argument in required if not argument.kwarg_only),
            **{argument.name: argument for argument in required if argument.kwarg_only},
        )
    except TypeError:
        return False
    for name, argument in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return False  # it takes anything, which says nothing
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if not _may_be(_annotation_name(parameter.annotation), str(argument.type)):
            return False
    return True


def _annotation_name(annotation: object) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.rpartition(".")[2]


def _may_be(annotation: str, schema_type: str) -> bool:
    """Whether an argument of the schema's type may be what the annotation says; what is neither is not judged."""
    tensor = "Tensor" in schema_type
    if annotation == "Tensor":
        return tensor
    return not (annotation in _NUMBERS and tensor)


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
