"""The kernels of a run: one table of all launch configurations, and their costliest instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profkit.analysis.kernel_names import shape, short_name
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.backends import backend_named
from profkit.core.formatting import format_percent
from profkit.core.types import KernelInstruction, RunDocument, Scope
from profkit.reporting.columns import Column, SortableTable, data_table, sortable_table
from profkit.reporting.view import Block, Detail, Fold, Section, Text, code
from profkit.reporting.views.summaries.kernels import kernel_columns

_NAME = 1000  # characters of a whole name: longer ones, which somebody made, are cut
_NAMED = 50  # whole names in a table


def kernels_of(document: RunDocument) -> tuple[KernelRow, ...]:
    """The rows of a GPU's kernels, largest first; none of an Apple GPU, whose encoders are no launch configurations."""
    metal = document.metal is not None or backend_named(document.backend).work == "encoder"
    return () if metal else kernel_rows(document)


def kernel_table(
    document: RunDocument, kernels: Sequence[KernelRow], otherwise: Sequence[Block]
) -> SortableTable:
    """The table of all kernels; `otherwise` is what formats without scripts show."""
    return sortable_table(
        "Kernels by launch configuration",
        kernel_columns(document),
        kernels,
        [
            f"{row.scope.name or '?'}"[:_NAME] + f" {shape(row.scope.id) if row.scope.id else ''}"
            for row in kernels
        ],
        note="A name tells the whole one where the pointer rests.",
        reference=tuple(otherwise),
    )


# ---------------------------------------------------------------- instructions

_INSTRUCTIONS, _KERNELS = 6, 5  # instructions of a kernel, and kernels
_LEAST = 0.05  # of the kernel's samples, wasted sectors or conflicts


def instructions_section(document: RunDocument) -> Section | None:
    """A table for each of the largest kernels; None where no report had values for single instructions."""
    by_kernel: dict[Scope, list[KernelInstruction]] = {}
    for instruction in document.instructions:
        if max(instruction.samples, instruction.excess_sectors, instruction.conflicts) >= _LEAST:
            by_kernel.setdefault(instruction.kernel, []).append(instruction)
    if not by_kernel:
        return None
    blocks = tuple(
        data_table(_INSTRUCTION, own[:_INSTRUCTIONS], title=short_name(kernel.name or "?", 60))
        for kernel, own in list(by_kernel.items())[:_KERNELS]
    )
    headline = "Where warps wait, and which accesses waste sectors or conflict, by machine instruction."
    return Section("Instructions", (Detail(blocks),), headline, Fold.FOLDED)


def _place(instruction: KernelInstruction) -> Text:
    """A place in the source, else the offset in the kernel's code."""
    if instruction.file is None:
        return f"at {instruction.offset:#x}"
    return code(f"{instruction.file.rsplit('/', 1)[-1]}:{instruction.line}")


def _stall(instruction: KernelInstruction) -> str | None:
    known = instruction.stall is not None and instruction.samples >= _LEAST
    return instruction.stall.replace("_", " ") if known and instruction.stall else None


def _part(title: str, share: Callable[[KernelInstruction], float]) -> Column[KernelInstruction]:
    def text(instruction: KernelInstruction) -> str:
        return f"{format_percent(100 * share(instruction))} %" if share(instruction) > 0 else "-"

    return Column(title, share, "%", text=text)


_INSTRUCTION: tuple[Column[KernelInstruction], ...] = (
    Column("line", _place),
    Column("instruction", lambda one: code(one.text) if one.text is not None else None),
    Column("waits for", _stall),
    _part("of its waiting", lambda one: one.samples),
    _part("of the wasted sectors", lambda one: one.excess_sectors),
    _part("of the conflicts", lambda one: one.conflicts),
)
