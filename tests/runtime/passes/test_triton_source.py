"""Products of Triton whose operands were widened before, by the source of the kernel."""

from __future__ import annotations

import pytest

from profkit.runtime.passes.host.compilers.triton_kernels import (
    exact_line,
    narrow_type,
    widened_line,
)

KERNEL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
{}
    tl.store(c_ptr, acc)
"""


def body(*lines: str) -> str:
    return KERNEL.format("\n".join(f"        {line}" for line in lines))


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (("a = tl.load(a_ptr).to(tl.float32)", "b = tl.load(b_ptr).to(tl.float32)", "acc += tl.dot(a, b)"), 7),
        (("a = tl.load(a_ptr)", "b = tl.load(b_ptr)", "acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc)"), 7),
        (("a = tl.load(a_ptr).to(tl.float32)", "b = tl.load(b_ptr).to(tl.float32)", "tl.dot(a, tl.trans(b))"), 7),
        (("a = tl.load(a_ptr)", "b = tl.load(b_ptr)", "acc += tl.dot(a, b)"), None),
        # One of them has to be float32, as the scores of attention: the other one follows it.
        (("a = tl.exp(acc)", "b = tl.load(b_ptr).to(tl.float32)", "acc += tl.dot(a, b)"), None),
        # Made smaller again before the product, or another value: what it is then is not known.
        (("a = tl.load(a_ptr).to(tl.float32)", "a = (a * 2).to(tl.bfloat16)", "acc += tl.dot(a, a)"), None),
        (("a = tl.load(a_ptr).to(tl.float32)", "acc += a"), None),
    ],
)  # fmt: skip
def test_a_product_is_widened_where_both_operands_were_loaded_and_made_float32(
    lines: tuple[str, ...], line: int | None
) -> None:
    assert widened_line(body(*lines)) == line


@pytest.mark.parametrize("source", ["", "def f(:", "x = " + "(" * 400 + ")" * 400, "\0"])
def test_a_source_that_is_none_has_no_product(source: str) -> None:
    assert widened_line(source) is None


def test_the_type_is_that_of_the_pointers_that_a_kernel_was_compiled_for() -> None:
    assert narrow_type("[('*bf16', 'D'), ('*fp32', 'D'), ('i32', '')]{'num_warps': 8}") == "bf16"
    assert narrow_type("[('*fp32', 'D'), ('i32', '')]") is None


@pytest.mark.parametrize(
    ("product", "line"),
    [
        ('acc = tl.dot(a, b, acc, input_precision="ieee")', 6),
        ("acc += tl.dot(a, b, allow_tf32=False)", 6),
        ('acc = tl.dot(a, b, acc, input_precision="tf32x3")', None),
        ("acc = tl.dot(a, b, acc, input_precision=PRECISION)", None),
        ("acc = tl.dot(a, b, acc)", None),
    ],
)
def test_a_product_that_asks_for_the_digits_of_float32_is_known_by_its_source(
    product: str, line: int | None
) -> None:
    assert exact_line(body("a = tl.load(a_ptr)", product)) == line
