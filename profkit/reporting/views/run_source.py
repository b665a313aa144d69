"""Where in a kernel: its costliest machine instructions, with the source line where it is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.kernel_names import short_name
from profkit.core.formatting import format_percent
from profkit.core.types import KernelInstruction, RunDocument, Scope
from profkit.reporting.view import DataTable, Detail, Fold, Section, TableColumn, Text, code, table

MOST = 6  # instructions of a kernel
KERNELS = 5
LEAST = 0.05  # of the kernel's samples, wasted sectors or conflicts
NAME = 60  # characters of a kernel's name
NOTHING = "-"
WORDS = 2  # columns behind this one hold numbers


def instructions_section(document: RunDocument) -> Section | None:
    """A table for each of the largest kernels; None where no report had values for single instructions."""
    by_kernel: dict[Scope, list[KernelInstruction]] = {}
    for instruction in document.instructions:
        if max(instruction.samples, instruction.excess_sectors, instruction.conflicts) >= LEAST:
            by_kernel.setdefault(instruction.kernel, []).append(instruction)
    if not by_kernel:
        return None
    blocks = tuple(_table(kernel, own) for kernel, own in list(by_kernel.items())[:KERNELS])
    headline = "Where warps wait, and which accesses waste sectors or conflict, by machine instruction."
    return Section("Instructions", (Detail(blocks),), headline, Fold.FOLDED)


def _table(kernel: Scope, instructions: Sequence[KernelInstruction]) -> DataTable:
    """Its instructions; columns in which nothing stands are left out."""
    titles = (
        "line",
        "instruction",
        "waits for",
        "of its waiting",
        "of the wasted sectors",
        "of the conflicts",
    )
    rows = [tuple(_cells(instruction)) for instruction in instructions[:MOST]]
    used = [place for place in range(len(titles)) if any(row[place] != NOTHING for row in rows)]
    columns = [TableColumn(titles[place], numeric=place > WORDS) for place in used]
    cells = [[row[place] for place in used] for row in rows]
    return table(columns, cells, title=short_name(kernel.name or "?", NAME))


def _cells(instruction: KernelInstruction) -> Iterator[Text]:
    """A place in the source, else the offset in the kernel's code."""
    if instruction.file is not None:
        yield code(f"{instruction.file.rsplit('/', 1)[-1]}:{instruction.line}")
    else:
        yield f"at {instruction.offset:#x}"
    yield code(instruction.text) if instruction.text is not None else NOTHING
    waits = instruction.stall if instruction.samples >= LEAST else None
    yield waits.replace("_", " ") if waits is not None else NOTHING
    for share in (instruction.samples, instruction.excess_sectors, instruction.conflicts):
        yield f"{format_percent(100 * share)} %" if share > 0 else NOTHING
