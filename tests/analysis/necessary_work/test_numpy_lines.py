"""Statements of NumPy as operations with shapes: by hand, and against NumPy itself."""

from __future__ import annotations

import ast
from itertools import product

import pytest

from profkit.analysis.necessary_work.numpy_lines import numpy_operations
from profkit.core.types import ArrayForm


def form(type_: str, *shape: int) -> ArrayForm:
    return ArrayForm(type_, shape, "C")


FORMS = {
    "x": form("<f4", 64, 100),
    "w": form("<f4", 100, 30),
    "b": form("<f4", 30),
    "y": form("<f4", 64, 30),
    "d": form("<f8", 64, 100),
    "i": form("<i8", 64, 100),
    "k": ArrayForm("int"),
    "self.w": form("<f4", 100, 30),
    "q": form("<f4", 8, 16, 32),
    "mine": ArrayForm(""),
    "s": form("<f8"),
}
F4 = 4
# By hand: names, FLOP of all, and bytes of all: each input once, each result once.
STATEMENTS = [
    ("y = x @ w", ["matmul"], 2 * 64 * 100 * 30, F4 * (64 * 100 + 100 * 30 + 64 * 30)),
    ("y = x.dot(self.w)", ["matmul"], 2 * 64 * 100 * 30, F4 * (64 * 100 + 100 * 30 + 64 * 30)),
    ("g = x.T @ y", ["matmul"], 2 * 64 * 100 * 30, F4 * (64 * 100 + 64 * 30 + 100 * 30)),
    ("g = x.T @ x", ["matmul"], 2 * 64 * 100 * 100, F4 * (64 * 100 + 100 * 100)),
    ("p = q @ q.transpose()[:, :, 0]", ["matmul"], 2 * 8 * 16 * 16 * 32, F4 * (8 * 16 * 32 + 8 * 16 * 16)),
    ("p = q.dot(q.reshape(8, 32, 16))", None, 0, 0),  # of each with each
    ("y = x @ w + b", ["matmul", "add"], 2 * 192000 + 1920, F4 * (6400 + 3000 + 1920 + 1920 + 30 + 1920)),
    ("z = x * x", ["multiply"], 6400, F4 * 2 * 6400),
    ("z = d * x", ["multiply"], 6400, 8 * 2 * 6400 + F4 * 6400),
    ("z = i / 2", ["divide"], 6400, 2 * 8 * 6400),
    ("z = x > 0", ["greater"], 6400, F4 * 6400 + 6400),
    ("x *= 2", ["multiply"], 6400, 2 * F4 * 6400),
    ("x[:, 0] = 0", ["copyto"], 0, F4 * 64),
    ("y = numpy.exp(x)", ["exp"], 6400, 2 * F4 * 6400),
    ("numpy.exp(x, out=x)", ["exp"], 6400, 2 * F4 * 6400),
    ("m = x.sum(axis=1, keepdims=True)", ["sum"], 6400, F4 * (6400 + 64)),
    ("m = numpy.max(x, 0)", ["max"], 6400, F4 * (6400 + 100)),
    ("m = x.argmax(-1)", ["argmax"], 6400, F4 * 6400 + 8 * 64),
    ("z = numpy.where(x > 0, x, 0)", ["greater", "where"], 6400, F4 * 6400 + 6400 + 6400 + F4 * 6400),
    ("z = numpy.einsum('bij,bkj->bik', q, q)", ["einsum"], 2 * 8 * 16 * 16 * 32, F4 * (8 * 16 * 32 + 8 * 16 * 16)),
    ("z = numpy.matmul(q, q.reshape(8, 32, 16))", ["matmul"], 2 * 8 * 16 * 16 * 32, F4 * (4096 + 2048)),
    ("z = x.astype(numpy.float64)", ["astype"], 0, 12 * 6400),
    ("return float((x - x.mean()).std())", ["mean", "subtract", "std"], 6400 * 5, F4 * (25600 + 3)),
    ("z = x[k] / len(x)", ["divide"], 100, 2 * F4 * 100),
    ("z = x[:10, None]", [], 0, 0),
    ("if x.max() > 3: pass", None, 0, 0),
    # What is not known for sure.
    ("y = relu(x @ w)", None, 0, 0),
    ("y = mine @ w", None, 0, 0),
    ("y = other @ w", None, 0, 0),
    ("y = d @ w", None, 0, 0),
    ("y = i @ i.T", None, 0, 0),
    ("y = w @ x @ w", None, 0, 0),
    ("y = x[x > 0]", None, 0, 0),
    ("y = x[k:]", None, 0, 0),
    ("x[x < 0] = 0", None, 0, 0),
    ("y = x * s", None, 0, 0),  # float64 with NumPy 2, float32 before
    ("y = numpy.exp(x, where=m)", None, 0, 0),
    ("y = numpy.sort(x)", None, 0, 0),
    ("y = [x @ w for _ in r]", None, 0, 0),
    ("y = x @", None, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "names", "flop", "moved"), STATEMENTS)
def test_a_statement_needs_what_its_operations_do(
    statement: str, names: list[str] | None, flop: int, moved: int
) -> None:
    found = numpy_operations(statement, FORMS)
    if names is None:
        assert found is None
        return
    assert found is not None
    assert [one.name for one in found] == names
    assert sum(one.work.flop for one in found) == flop
    assert sum(one.work.bytes or 0 for one in found) == moved


def test_another_shape_is_another_work() -> None:
    (larger,) = numpy_operations("y = x @ w", {**FORMS, "x": form("<f4", 65, 100)}) or ()
    assert larger.work.flop == 2 * 65 * 100 * 30
    assert numpy_operations("y = x @ w", {**FORMS, "x": form("<f4", 64, 101)}) is None


TYPES = ["b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
WORDS = {"fp16": "f2", "fp32": "f4", "fp64": "f8", "bool": "b1", "uint8": "u1"}
WORDS |= {f"int{8 * size}": f"i{size}" for size in (1, 2, 4, 8)}


@pytest.mark.parametrize(("left", "right"), list(product(TYPES, TYPES)))
def test_types_of_results_are_those_of_numpy(left: str, right: str) -> None:
    numpy = pytest.importorskip("numpy")
    forms = {"a": ArrayForm(f"<{left}", (3,)), "b": ArrayForm(f"<{right}", (3,))}
    (found,) = numpy_operations("c = a * b", forms) or ()
    assert WORDS[found.work.type or ""] == numpy.result_type(left, right).str[1:]


@pytest.mark.parametrize(
    "statement",
    [text for text, names, *_ in STATEMENTS if names and isinstance(ast.parse(text).body[0], ast.Assign)
     and "[:, 0] =" not in text],
)  # fmt: skip
def test_results_have_the_shape_and_the_type_that_numpy_gives_them(statement: str) -> None:
    numpy = pytest.importorskip("numpy")
    values = {name: numpy.ones(one.shape, one.type) for name, one in FORMS.items() if one.shape is not None}
    holder = type("Holder", (), {"w": values["self.w"]})
    space = {"numpy": numpy, "self": holder, "k": 3, **values}
    exec(statement, space)
    assigned = ast.parse(statement).body[0]
    assert isinstance(assigned, ast.Assign)
    result = numpy.asarray(space[ast.unparse(assigned.targets[0])])
    # What is made is added to itself once more: the one operand that goes in there is the result.
    *_, last = numpy_operations(f"z = numpy.negative({ast.unparse(assigned.value)})", FORMS) or ()
    (made,) = last.inputs
    assert (made.shape, WORDS[made.type or ""]) == (result.shape, result.dtype.str[1:])
