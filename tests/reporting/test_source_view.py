"""Single machine instructions in a report: with their lines where they are known, and nothing made up."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import KernelInstruction, Scope
from profkit.reporting.view import Detail, plain_text
from profkit.reporting.views.run_about import instructions_section
from tests import documents

KERNEL = Scope("kernel", "rms_norm(float *)", "8192x1x1 of 256x1x1")
LOAD = KernelInstruction(KERNEL, 0x8A0, "LDG", "src/norm.cu", 88, 0.01, 0.25, 0.0, "wait")
WAIT = KernelInstruction(KERNEL, 0x800, None, None, None, 0.42, 0.0, 0.0, "long_scoreboard")
SMALL = KernelInstruction(KERNEL, 0x900, "STG", None, None, 0.01, 0.0, 0.0)


def rows(*instructions: KernelInstruction) -> list[list[str]]:
    section = instructions_section(replace(documents.empty(), instructions=instructions))
    assert section is not None
    (detail,) = section.blocks
    assert isinstance(detail, Detail)
    (table,) = detail.blocks
    return [[plain_text(cell) for cell in row] for row in table.rows]  # type: ignore[attr-defined]


def test_an_access_stands_on_its_line_and_a_wait_at_its_offset() -> None:
    assert rows(LOAD, WAIT, SMALL) == [
        ["norm.cu:88", "LDG", "", "1.0 %", "25.0 %"],
        ["at 0x800", "", "long scoreboard", "42.0 %", "-"],
    ]
