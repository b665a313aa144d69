"""The call tree of a run: from where the program begins down to what takes the time, a line for each function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.analysis.function_names import library_name, public_module
from profkit.analysis.stacks.files import NATIVE_CODE, flame_of
from profkit.analysis.stacks.merge import is_python
from profkit.analysis.stacks.python_code import is_users_code, module_name
from profkit.analysis.stacks.wall_time import is_wall_time
from profkit.core.errors import UsageError
from profkit.core.formatting import format_quantity
from profkit.core.types import Frame, Stacks
from profkit.reporting.view import DataTable, Section, Span, Style, TableColumn, Text, View, joined, soft
from profkit.reporting.views.run_about import read_extras

MIN_SHARE = 0.01  # of the whole: less is not shown
_DEEPEST = 24  # steps to the right; deeper functions stand below each other
_STEP = 2  # columns


def view(folder: Path) -> View:
    """Return the tree of the run in `folder`. Raises UsageError if nothing was sampled with its callers."""
    stacks = [sampled for sampled in read_extras(folder).stacks if not is_wall_time(sampled)]
    python = [
        sampled for sampled in stacks if any(is_python(frame) for stack in sampled.weights for frame in stack)
    ]
    chosen = max(python or stacks, key=lambda sampled: sum(sampled.weights.values()), default=None)
    rows = tuple(_rows(chosen)) if chosen is not None else ()
    if chosen is None or not rows:
        raise UsageError(
            f"{folder} has no sampled stacks to make a tree of",
            "profkit profile --passes timing,stacks,trace -- COMMAND, and then profkit summarize RUN --tree",
        )
    left_out = f"functions below {100 * MIN_SHARE:.0f} % are left out, and a library's are one"
    columns = (
        TableColumn("share", numeric=True),
        TableColumn("time", numeric=True),
        TableColumn("function", wraps=True),
    )
    table = DataTable(columns, rows, note=soft(f"{left_out[:1].upper()}{left_out[1:]}."))
    return View("Call tree", (Section(chosen.title, (table,)),))


def _rows(stacks: Stacks) -> Iterator[tuple[Text, ...]]:
    """Yield `93.1 % 2.27 s work (app.py)`, each function below the one that called it."""
    flame = flame_of(_folded(stacks), MIN_SHARE)
    for box in flame.boxes if flame is not None else ():
        share = box.value / flame.total if flame is not None else 0.0
        indent = " " * _STEP * min(box.depth, _DEEPEST)
        soft_name = box.kind == NATIVE_CODE and any(map(is_python, next(iter(stacks.weights), ())))
        name = joined(indent, Span(box.name, Style.SOFT if soft_name else Style.PLAIN))
        yield f"{100 * share:.1f} %", format_quantity(box.value, stacks.unit), name


def _folded(stacks: Stacks) -> Stacks:
    """Return the stacks of Python with what runs in libraries on end as one frame: the function that the program
    called.
    """
    weights: dict[tuple[Frame, ...], float] = {}
    for stack, weight in stacks.weights.items():
        folded = tuple(_without_inner(stack)) if any(map(is_python, stack)) else stack
        weights[folded] = weights.get(folded, 0.0) + weight
    return Stacks(stacks.title, stacks.unit, weights)


def _without_inner(stack: Sequence[Frame]) -> Iterator[Frame]:
    inside = False
    for frame in stack:
        users = is_users_code(frame.file, frame.function)
        if users or not inside:
            yield frame if users else _of_library(frame)
        inside = not users


def _of_library(frame: Frame) -> Frame:
    """Return `json.loads` in place of `loads (__init__.py)`."""
    if not is_python(frame) or not frame.file or not frame.file.endswith(".py"):
        return frame
    module, name = public_module(module_name(frame.file)), library_name(frame.function).rpartition(".")[2]
    return Frame(f"{module}.{name}" if name else module)
