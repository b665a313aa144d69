"""The notation of operator traces, as the field's files have it."""

from __future__ import annotations

import math

import pytest

from profkit.kernels.evaluation.suites.notation import (
    Call,
    NotationError,
    Symbol,
    TensorForm,
    format_call,
    parse_call,
    read_calls,
)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("((T([8, 16], f16), 1.0), {'alpha': 2})", Call((TensorForm((8, 16), "float16"), 1.0), {"alpha": 2})),
        ("((T([4], f32, [2]),), {})", Call((TensorForm((4,), "float32", (2,)),))),
        ("((T([4], f32, stride=(2,)), -inf), {})", Call((TensorForm((4,), "float32", (2,)), -math.inf))),
        (
            "((T([], b8), [T([2], i64), None]), {})",
            Call((TensorForm((), "bool"), [TensorForm((2,), "int64"), None])),
        ),
        (
            "((T([2], f32), ), {'dtype': th.float16, 'device': 'torch.device(\"cuda:0\")', 'layout': torch.strided})",
            Call(
                (TensorForm((2,), "float32"),),
                {
                    "dtype": Symbol("dtype", "float16"),
                    "device": Symbol("device", "cuda:0"),
                    "layout": Symbol("layout", "strided"),
                },
            ),
        ),
        (
            "((T([2], f32),), {'dtype': 'f16'})",
            Call((TensorForm((2,), "float32"),), {"dtype": Symbol("dtype", "float16")}),
        ),
    ],
)
def test_a_call_is_read_and_written_again(text: str, call: Call) -> None:
    assert parse_call(text) == call
    assert parse_call(format_call(call)) == call


def test_offsets_and_shared_storages_stand_in_a_comment() -> None:
    form = TensorForm((4,), "float32", (1,), offset=3, storage=0)
    call = Call((TensorForm((4,), "float32", storage=0), form, TensorForm((2,), "int64")))
    text = format_call(call)
    assert text.endswith("  # offsets [0, 3, 0] storages [0, 0, 2]")
    assert parse_call(text) == call
    assert eval(text, {"T": lambda *a, **k: 0, "f32": 0, "i64": 0}) == (
        (0, 0, 0),
        {},
    )  # other readers pass it over


@pytest.mark.parametrize(
    "text",
    ["((__import__('os').system('false'),), {})", "((T([2], f32)", "((T([-2], f32),), {})", "3", "((x,), {})",
     "((T([2, 2], f32, (1,)),), {})", "((T([2], f32, 1),), {})", "((T([2], f32, ['a']),), {})",
     f"((T([{1 << 64}], f32),), {{}})", f"((0x{'f' * 5000},), {{}})", f"(({'9' * 5000},), {{}})", "((1\0,), {})",
     f"(({'9' * 400} + 1j,), {{}})", "((T([2], f32),), {})  # offsets [1 2] storages [0]",
     f"((T([2], f32),), {{}})  # offsets [{'9' * 5000}] storages [0]"],
)  # fmt: skip
def test_what_is_no_call_is_refused_and_never_executed(text: str) -> None:
    with pytest.raises(NotationError):
        parse_call(text)


def test_a_file_has_operators_counts_and_names_of_older_versions() -> None:
    lines = ["junk", "cnt: 1, ((), {})", "Operator: aten.sum.SymInt", "cnt: 12, ((T([2], f16), [0]), {})"]
    assert [(call.operation, call.count) for call in read_calls(lines)] == [("sum.dim_IntList", 12)]
