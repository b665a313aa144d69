"""Names that are alike are held in few bytes, and come back as they were, in Python's counting and in a script's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from profkit.core.types import GpuTrace, Kernel, KernelTime
from profkit.reporting.html.graphs import packed, trimmed
from tests import gpu_documents
from tests.reporting.html.conftest import Show

LIVE = "#kernel-table tbody.live tr[data-at]"
NAMES = ("kernel_🚀<1>(int)", "kernel_🚁<1>(int)", "kernel_ß<1>(int)", "aa", "aaa", "aaaa", "é<2>", "ê<2>")


def unpacked(told: Any) -> list[str | None]:
    """As the page's script does it, which counts a character beyond U+FFFF as two."""
    found: list[str] = []
    before = b""
    for n in range(0, len(told["texts"]), 3):
        begin, end, middle = told["texts"][n : n + 3]
        before = before[: 2 * begin] + middle.encode("utf-16-le") + before[len(before) - 2 * end :]
        found.append(before.decode("utf-16-le"))
    return [None if at < 0 else found[at] for at in told["at"]]


@given(
    st.lists(st.none() | st.text(alphabet="ab<é\u0301\u4e00\U0001f680\U0001f681", max_size=8), max_size=20)
)
def test_any_texts_come_back(texts: list[str | None]) -> None:
    found = unpacked(packed(texts))
    assert found + [None] * (len(texts) - len(found)) == texts


def test_instances_of_a_template_take_a_third_of_their_names() -> None:
    names = [
        f"void kernel_{n}<at::native::AddFunctor<float>, std::array<char*, 3ul>>(int)" for n in range(1000)
    ]
    assert len(json.dumps(packed(names))) < 0.35 * len(json.dumps(names))


def test_what_is_absent_at_the_end_is_left_out() -> None:
    assert trimmed([1.0, None, 2.0, None, None]) == [1.0, None, 2.0]
    assert trimmed([None, None]) == []


def test_the_page_shows_every_name_as_it_was(show: Show) -> None:
    kernels = tuple(Kernel(name, (4, 1, 1), (128, 1, 1)) for name in NAMES)
    times = tuple(KernelTime(one, 2, 1e-3 / (n + 1), 5e-4) for n, one in enumerate(kernels))
    document = replace(
        gpu_documents.run(), trace=GpuTrace("nsys", times, span=1.0, busy=0.5), readings=(), kernels=()
    )
    page = cast(Any, show(document).page)
    for number, name in enumerate(NAMES):
        page.locator(LIVE).nth(number).click()
        assert page.locator("#kernel-detail pre").inner_text() == name
    page.get_by_label("Filter").fill("🚁")
    assert page.locator(LIVE).count() == 1
