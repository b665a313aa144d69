"""Loops that go down columns, by the text of C, C++ and Rust."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.native.column_walks import column_walks_at

BLUR = """static void blur(const float *src, float *dst) {{
    for (int {outer} = 0; {outer} < N; {outer}++) {{
        for (int {inner} = 0; {inner} < N; {inner}++) {{
            float acc = 0;
            for (int k = -R; k <= R; k++)
                acc += kernel[k + R] * src[(size_t)clampi(y + k, H - 1) * W + x];  // here
            dst[(size_t)y * W + x] = acc;
        }}
    }}
}}
"""
PRODUCT = """for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
        for (size_t k = 0; k < n; ++k)
            c[i * n + j] += a[i * n + k] * {b};  // here
"""
SUMS = """for x in 0..width {{
    for y in 0..height {{
        total += {index};  // here
    }}
}}
"""

SMOOTH = """for (int col = 1; col < W - 1; col++) {{
    for (int row = 1; row < H - 1; row++) {{
        size_t at = (size_t)row * W + col;{again}
        sum += src[{index}];  // here
    }}
}}
"""


def walks(text: str) -> list[tuple[str, str]]:
    lines = text.splitlines()
    number = next(at for at, line in enumerate(lines, 1) if "// here" in line)
    return [(walk.name, walk.how) for walk in column_walks_at(lines, number)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BLUR.format(outer="x", inner="y"), [("src", "x y")]),
        (BLUR.format(outer="y", inner="x"), []),  # as it is written after the change
        (PRODUCT.format(b="b[k * n + j]"), [("b", "j k")]),
        (PRODUCT.format(b="b[k][j]"), [("b", "j k")]),
        (PRODUCT.format(b="b[j * n + k]"), []),  # transposed
        (PRODUCT.format(b="b[i]"), []),
        (SUMS.format(index="image[y * width + x]"), [("image", "x y")]),
        (SUMS.format(index="image[x * height + y]"), []),
        (SUMS.format(index="image[order[y] + x]"), []),  # whatever order holds
        (SMOOTH.format(again="", index="at - W"), [("src", "col row")]),
        (SMOOTH.format(again="", index="other"), []),
        (SMOOTH.format(again="\n        at = order[at];", index="at"), []),  # it is given something else
        ("for (int y = 0; y < n; y++)\n    s += a[y * w + x];  // here\n", []),  # one column alone
    ],
)
def test_an_index_that_moves_by_rows_in_the_inner_loop_is_a_walk_down_a_column(
    text: str, said: list[tuple[str, str]]
) -> None:
    assert walks(text) == said
