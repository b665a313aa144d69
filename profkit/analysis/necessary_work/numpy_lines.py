"""Finds the operations of NumPy in a statement of a program, and the least work of each, by the shapes of its names.

The statement is evaluated with shapes instead of arrays. If one step is not known for sure, the whole statement has no
result: a name that holds something else, a function that is not in the tables, elements that are chosen by values.
Views (`.T`, `reshape`, slices of whole axes) need no work.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from profkit.analysis.necessary_work.calls import OperationCall, Tensor
from profkit.analysis.necessary_work.formulas import necessary_work
from profkit.analysis.necessary_work.numpy_types import (
    BUFFER_TYPES,
    NAMED_TYPES,
    NotKnown,
    Number,
    Value,
    float_type,
    promoted_type,
)
from profkit.analysis.necessary_work.work import NecessaryWork, broadcast_shape, kind_of, moved_bytes, words
from profkit.analysis.stacks.line_counts import path_of
from profkit.core.types import ArrayForm, LineCount

_ARITHMETIC = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "power", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.MatMult: "matmul",
}  # fmt: skip
_COMPARED = {
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
    ast.GtE: "greater_equal",
}  # fmt: skip
_SIGNED = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert"}
_OF_TWO = frozenset(
    words(
        "add subtract multiply remainder mod fmod maximum minimum fmax fmin power bitwise_and bitwise_or bitwise_xor "
        "floor_divide"
    )
)
_OF_TWO_FLOATS = frozenset(words("divide true_divide arctan2 hypot logaddexp copysign"))
_COMPARISONS = frozenset(
    words("equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor")
)
_OF_ONE = frozenset(words("negative positive invert abs absolute square sign conj"))
_OF_ONE_FLOAT = frozenset(
    words(
        "exp exp2 expm1 log log2 log10 log1p sqrt cbrt reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh "
        "floor ceil trunc rint"
    )
)
_PREDICATES = frozenset(words("isnan isinf isfinite logical_not signbit"))
_REDUCED = frozenset(words("sum mean prod max min amax amin std var"))
_REDUCED_TO_BOOL = frozenset(words("any all"))
_REDUCED_TO_INDEX = frozenset(words("argmax argmin"))
_LIKE = frozenset(words("zeros_like ones_like empty_like full_like"))


@dataclass(frozen=True)
class NumpyOperation:
    """One call of NumPy: its name, what goes into it (numbers left out), and the least that it needs."""

    name: str
    inputs: tuple[Tensor, ...]
    work: NecessaryWork


@dataclass(frozen=True)
class _Array(Tensor):
    """An array, and the name whose memory it is: that of a view is read once, however often it is named."""

    source: str = ""


def _view(of: Tensor, shape: Sequence[int]) -> Tensor:
    return _Array(tuple(shape), of.type, source=of.source if isinstance(of, _Array) else "")


def _moved(inputs: Sequence[Tensor], result: Tensor) -> float | None:
    """Return the bytes of the inputs, of each memory once, and of the result."""
    kept: dict[object, Tensor] = {}
    for number, tensor in enumerate(inputs):
        key = tensor.source if isinstance(tensor, _Array) and tensor.source else number
        kept[key] = max(kept.get(key, tensor), tensor, key=lambda each: each.elements)
    return moved_bytes(*kept.values(), result)


def forms_of(counted: LineCount, pick: Callable[..., ArrayForm]) -> dict[str, ArrayForm]:
    """Return what each name held, of several shapes the smallest or the largest; nothing of one that held others."""
    kept = {}
    for name, forms in counted.forms.items():
        alike = {(form.type, len(form.shape) if form.shape is not None else None) for form in forms}
        if len(alike) == 1:
            kept[name] = pick(forms, key=lambda form: prod(form.shape or ()))
    return kept


def numpy_operations(statement: str, forms: Mapping[str, ArrayForm]) -> tuple[NumpyOperation, ...] | None:
    """Return the operations of a statement in their order; None where it does something that is not known.

    `forms` has what each path of a name held: `{"self.w": ArrayForm("<f4", (4, 3), "C")}`.
    """
    try:
        tree = ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    evaluation = _Evaluation(forms)
    try:
        for node in tree.body:
            evaluation.statement(node)
    except (NotKnown, RecursionError):
        return None
    return tuple(evaluation.operations)


class _Evaluation:
    def __init__(self, forms: Mapping[str, ArrayForm]) -> None:
        self._forms = forms
        self.operations: list[NumpyOperation] = []

    # ------------------------------------------------------------ statements

    def statement(self, node: ast.stmt) -> None:
        """Evaluate a simple statement."""
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.AugAssign):
            self._in_place(node)
        elif isinstance(target, ast.Subscript):
            value = self.value(node.value)  # type: ignore[attr-defined]
            self._copy("copyto", self._part(target), value)
        elif isinstance(node, (ast.Expr, ast.Return, ast.Assign)) and node.value is not None:
            if not all(map(_is_plain, getattr(node, "targets", ()))):
                raise NotKnown
            self.values(node.value)
        else:
            raise NotKnown

    def values(self, node: ast.expr) -> None:
        """Evaluate what may be several values: `a, b`."""
        for element in node.elts if isinstance(node, ast.Tuple) else [node]:
            self.value(element)

    def _in_place(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        target = (
            self._part(node.target) if isinstance(node.target, ast.Subscript) else self.value(node.target)
        )
        name = _ARITHMETIC.get(type(node.op))
        if name is None:
            raise NotKnown
        if isinstance(target, Tensor):
            self._binary(name, target, value, out=target)
        elif isinstance(value, Tensor):
            self._binary(name, target, value)

    def _copy(self, name: str, target: Value, value: Value) -> None:
        if not isinstance(target, Tensor):
            raise NotKnown
        given = [value] if isinstance(value, Tensor) else []
        if broadcast_shape([target, *given]) != target.shape:
            raise NotKnown
        work = NecessaryWork(0.0, _moved(given, target), "memory", target.type)
        self.operations.append(NumpyOperation(name, tuple(given) or (target,), work))

    # ------------------------------------------------------------ expressions

    def value(self, node: ast.expr) -> Value:
        """Return what an expression gives."""
        known = self._named(node)
        if known is not None:
            return known
        if isinstance(node, ast.Constant):
            return Number(type(node.value).__name__, node)
        if isinstance(node, ast.BinOp):
            name = _ARITHMETIC.get(type(node.op))
            left, right = self.value(node.left), self.value(node.right)
            if name is None:
                raise NotKnown
            return self._binary(name, left, right)
        if isinstance(node, ast.UnaryOp):
            inner = self.value(node.operand)
            name = _SIGNED.get(type(node.op))
            if name is None or not isinstance(inner, Tensor):
                return _number_or_raise(inner, node)
            return self._unary(name, inner)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            left, right = self.value(node.left), self.value(node.comparators[0])
            return self._binary(_COMPARED[type(node.ops[0])], left, right)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            if _is_size(node.value):
                return self._size(node.value, node)
            return self._part(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise NotKnown

    def _named(self, node: ast.AST) -> Value | None:
        form = self._forms.get("".join(path_of(node)) or "?")
        if form is None or not form.type:
            return None
        if form.shape is None:
            return Number(form.type, node)
        type_ = BUFFER_TYPES.get(form.type[1:])
        if form.type[0] not in "<|=" or type_ is None:
            raise NotKnown
        return _Array(form.shape, type_, source="".join(path_of(node)))

    def _attribute(self, node: ast.Attribute) -> Value:
        if _is_size(node) and node.attr != "shape":
            return self._size(node, node)
        base = self.value(node.value)
        if node.attr == "T" and isinstance(base, Tensor):
            return _view(base, base.shape[::-1])
        raise NotKnown

    def _size(self, node: ast.expr, whole: ast.AST) -> Number:
        assert isinstance(node, ast.Attribute)
        self.value(node.value)
        return Number("int", whole)

    def _part(self, node: ast.Subscript) -> Tensor:
        """Return a view: whole axes, new ones, and single elements of an axis."""
        base = self.value(node.value)
        if not isinstance(base, Tensor):
            raise NotKnown
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        left, shape = list(base.shape), []
        for key in keys:
            if (isinstance(key, ast.Constant) and key.value is None) or _dotted(key) == "numpy.newaxis":
                shape.append(1)
            elif not left:
                raise NotKnown
            elif isinstance(key, ast.Slice) and key.lower is None and key.upper is None and key.step is None:
                shape.append(left.pop(0))
            elif isinstance(key, ast.Slice):
                shape.append(_length(key, left.pop(0)))
            elif (
                isinstance(key, ast.Constant) and key.value is Ellipsis and key is keys[0] and len(keys) == 1
            ):
                shape += left
                left = []
            else:
                index = self.value(key)
                if not isinstance(index, Number) or index.type != "int":
                    raise NotKnown
                left.pop(0)
        return _view(base, (*shape, *left))

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> Value:
        name = _dotted(node.func)
        if name.startswith("numpy."):
            return self._function(name.removeprefix("numpy."), node)
        if name in ("float", "int", "len", "bool") and len(node.args) == 1 and not node.keywords:
            self.value(node.args[0])
            return Number("int" if name == "len" else name, node)
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func.attr, self.value(node.func.value), node)
        raise NotKnown

    def _function(self, name: str, node: ast.Call) -> Value:
        if f"numpy.{name}" in NAMED_TYPES and len(node.args) == 1:
            return _number_or_raise(self.value(node.args[0]), node)
        if name == "einsum":
            return self._einsum(node)
        out = self._out(node)
        if name in _REDUCED | _REDUCED_TO_BOOL | _REDUCED_TO_INDEX | {"linalg.norm"}:
            return self._reduce(name, self.value(node.args[0]), node, node.args[1:])
        values = [self.value(argument) for argument in node.args]
        if any(keyword.arg != "out" for keyword in node.keywords):
            raise NotKnown
        if name in ("dot", "matmul") and len(values) == 2 and (name == "matmul" or _are_matrices(values)):
            return self._binary("matmul", values[0], values[1], out=out)
        if len(values) == 2 and name in _OF_TWO | _OF_TWO_FLOATS | _COMPARISONS:
            return self._binary(name, values[0], values[1], out=out)
        if len(values) == 1 and isinstance(values[0], Tensor):
            if name in _OF_ONE | _OF_ONE_FLOAT | _PREDICATES:
                return self._unary(name, values[0], out=out)
            if name in _LIKE or name == "copy":
                new = Tensor(values[0].shape, values[0].type)
                read = [values[0]] if name == "copy" else []
                self._copy(name, new, read[0] if read else Number("int", node))
                return new
            if name == "transpose":
                return _view(values[0], values[0].shape[::-1])
        if name == "where" and len(values) == 3:
            return self._where(values)
        bounds = values[1:]
        if (
            name == "clip"
            and isinstance(values[0], Tensor)
            and all(isinstance(bound, Number) for bound in bounds)
        ):
            return self._unary("clip", values[0], out=out)
        raise NotKnown

    def _method(self, name: str, base: Value, node: ast.Call) -> Value:
        if not isinstance(base, Tensor):
            raise NotKnown
        if name in _REDUCED | _REDUCED_TO_BOOL | _REDUCED_TO_INDEX:
            return self._reduce(name, base, node, node.args)
        if node.keywords:
            raise NotKnown
        if name == "dot" and len(node.args) == 1:
            other = self.value(node.args[0])
            if not _are_matrices((base, other)):
                raise NotKnown
            return self._binary("matmul", base, other)
        if name == "copy" and not node.args:
            new = Tensor(base.shape, base.type)
            self._copy("copy", new, base)
            return new
        if name == "astype" and len(node.args) == 1 and (type_ := NAMED_TYPES.get(_dotted(node.args[0]))):
            new = Tensor(base.shape, type_)
            self._copy("astype", new, base)
            return new
        if name == "transpose" and not node.args:
            return _view(base, base.shape[::-1])
        if name == "item" and not node.args and base.elements == 1:
            return Number("float", node)
        if name == "reshape":
            return self._reshape(base, node.args)
        raise NotKnown

    def _reshape(self, base: Tensor, args: Sequence[ast.expr]) -> Tensor:
        given = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple) else args
        sizes = [_integer(size) for size in given]
        free = [n for n, size in enumerate(sizes) if size == -1]
        known = prod(size for size in sizes if size is not None and size >= 0)
        if None in sizes or len(free) > 1 or not known or base.elements % known:
            raise NotKnown
        shape = tuple(base.elements // known if size == -1 else size or 0 for size in sizes)
        if prod(shape) != base.elements:
            raise NotKnown
        return _view(base, shape)

    def _out(self, node: ast.Call) -> Tensor | None:
        out = next((keyword.value for keyword in node.keywords if keyword.arg == "out"), None)
        value = self.value(out) if out is not None else None
        if isinstance(value, Number):
            raise NotKnown
        return value

    # ------------------------------------------------------------ operations

    def _add(self, name: str, inputs: Sequence[Value], result: Tensor, flop: float) -> Tensor:
        arrays = tuple(value for value in inputs if isinstance(value, Tensor))
        work = NecessaryWork(flop, _moved(arrays, result), "fma" if flop else "memory", result.type)
        self.operations.append(NumpyOperation(name, arrays, work))
        return result

    def _unary(self, name: str, data: Tensor, out: Tensor | None = None) -> Tensor:
        type_ = (
            "bool" if name in _PREDICATES else float_type(data.type) if name in _OF_ONE_FLOAT else data.type
        )
        result = out or Tensor(data.shape, type_)
        return self._add(name, (data,), result, float(data.elements))

    def _binary(self, name: str, left: Value, right: Value, out: Tensor | None = None) -> Value:
        arrays = [value for value in (left, right) if isinstance(value, Tensor)]
        if not arrays:
            assert isinstance(left, Number)
            return Number("float", left.node)
        if name == "matmul":
            return self._matmul(arrays, out)
        shape = broadcast_shape(arrays)
        if shape is None or (out is not None and out.shape != shape):
            raise NotKnown
        type_ = promoted_type([left, right])
        if name in _COMPARISONS:
            type_ = "bool"
        elif name in _OF_TWO_FLOATS:
            type_ = float_type(type_)
        result = Tensor(shape, type_)
        return self._add(name, (left, right), out or result, float(result.elements))

    def _matmul(self, arrays: Sequence[Tensor], out: Tensor | None) -> Tensor:
        if len(arrays) != 2 or arrays[0].type != arrays[1].type or arrays[0].type not in ("fp32", "fp64"):
            raise NotKnown  # BLAS has these two; of two types NumPy makes copies first
        left, right = arrays
        work = necessary_work(OperationCall("matmul", (left, right)))
        if work is None:
            raise NotKnown
        rows = left.shape[-2:-1] if len(left.shape) > 1 else ()
        columns = right.shape[-1:] if len(right.shape) > 1 else ()
        batch = broadcast_shape([Tensor(left.shape[:-2]), Tensor(right.shape[:-2])])
        assert batch is not None
        result = Tensor((*batch, *rows, *columns), left.type)
        work = replace(work, bytes=_moved(arrays, result))
        self.operations.append(NumpyOperation("matmul", (left, right), work))
        return out or result

    def _where(self, values: Sequence[Value]) -> Tensor:
        arrays = [value for value in values if isinstance(value, Tensor)]
        shape = broadcast_shape(arrays)
        if shape is None or not isinstance(values[0], Tensor):
            raise NotKnown
        result = Tensor(shape, promoted_type(values[1:]))
        # Of both others together at least one element is read for each of the result.
        smaller = min((value.bytes or 0.0 for value in values[1:] if isinstance(value, Tensor)), default=0.0)
        moved = (_moved([values[0]], result) or 0.0) + (smaller if len(arrays) == 3 else 0.0)
        self.operations.append(
            NumpyOperation("where", tuple(arrays), NecessaryWork(0.0, moved, "memory", result.type))
        )
        return result

    def _reduce(self, name: str, data: Value, node: ast.Call, args: Sequence[ast.expr]) -> Value:
        if not isinstance(data, Tensor) or len(args) > 1:
            raise NotKnown
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        axis = args[0] if args else given.pop("axis", None)
        keep = given.pop("keepdims", None)
        if given or (
            keep is not None and not (isinstance(keep, ast.Constant) and isinstance(keep.value, bool))
        ):
            raise NotKnown
        kept = isinstance(keep, ast.Constant) and keep.value is True
        gone = set(range(len(data.shape)))
        if axis is not None and not (isinstance(axis, ast.Constant) and axis.value is None):
            axes = [_integer(element) for element in (axis.elts if isinstance(axis, ast.Tuple) else [axis])]
            gone = {
                axis_number % len(data.shape)
                for axis_number in axes
                if axis_number is not None and -len(data.shape) <= axis_number < len(data.shape)
            }
            if len(gone) != len(axes):
                raise NotKnown
        shape = tuple(
            1 if place in gone else size for place, size in enumerate(data.shape) if kept or place not in gone
        )
        type_ = "int64" if name in _REDUCED_TO_INDEX else "bool" if name in _REDUCED_TO_BOOL else data.type
        if name in ("mean", "std", "var", "linalg.norm"):
            type_ = float_type(type_)
        elif name in ("sum", "prod") and type_ is not None and kind_of(type_) < 2:
            type_ = "int64"
        each = 3 if name in ("std", "var") else 2 if name == "linalg.norm" else 1
        return self._add(name, (data,), Tensor(shape, type_), float(each * data.elements))

    def _einsum(self, node: ast.Call) -> Tensor:
        """Return the result for two operands: a multiply-add for each combination of all indices, if any is summed."""
        text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        operands = [self.value(operand) for operand in node.args[1:]]
        arrays = [operand for operand in operands if isinstance(operand, Tensor)]
        if not isinstance(text, str) or node.keywords or len(arrays) != len(operands) or len(arrays) != 2:
            raise NotKnown
        left, arrow, right = text.replace(" ", "").partition("->")
        indices = left.split(",")
        if (
            not arrow
            or "." in left
            or [len(names) for names in indices] != [len(array.shape) for array in arrays]
        ):
            raise NotKnown
        sizes: dict[str, int] = {}
        for names, array in zip(indices, arrays, strict=True):
            for index, size in zip(names, array.shape, strict=True):
                if sizes.setdefault(index, size) != size:
                    raise NotKnown
        if not set(right) <= sizes.keys() or arrays[0].type != arrays[1].type:
            raise NotKnown
        result = Tensor(tuple(sizes[index] for index in right), arrays[0].type)
        summed = len(sizes) > len(right)
        flop = (2.0 if summed else 1.0) * prod(sizes.values())
        work = NecessaryWork(flop, _moved(arrays, result), "tensor" if summed else "fma", result.type)
        self.operations.append(NumpyOperation("einsum", tuple(arrays), work))
        return result


# ------------------------------------------------------------ helpers


def _is_plain(target: ast.AST) -> bool:
    """Return whether a target only takes a name for what was made."""
    if isinstance(target, ast.Tuple):
        return all(map(_is_plain, target.elts))
    return isinstance(target, (ast.Name, ast.Attribute))


def _are_matrices(values: Sequence[Value]) -> bool:
    """Return whether `dot` is the product of matrices and vectors: of more dimensions it takes each with each."""
    return all(isinstance(value, Tensor) and 1 <= len(value.shape) <= 2 for value in values)


def _is_size(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "ndim")


def _number_or_raise(value: Value, node: ast.AST) -> Number:
    if not isinstance(value, Number):
        raise NotKnown
    return Number(value.type, node)


def _dotted(node: ast.AST) -> str:
    path = path_of(node)
    return "".join(path) if not any(part.startswith("[") for part in path) else ""


def _integer(node: ast.AST) -> int | None:
    """Return `-1` as it is written."""
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign < 0 else node
    value = inner.value if isinstance(inner, ast.Constant) else None
    return sign * value if type(value) is int else None


def _length(key: ast.Slice, size: int) -> int:
    """Return how many elements a slice with written bounds has."""
    parts = [key.lower, key.upper, key.step]
    numbers = [_integer(part) if part is not None else None for part in parts]
    if any(part is not None and number is None for part, number in zip(parts, numbers, strict=True)):
        raise NotKnown
    return len(range(*slice(*numbers).indices(size)))
