"""`%load_ext profkit`: `%profkit STATEMENT` and `%%profkit` in IPython and in notebooks.

What is profiled is compiled as a part of its cell, so that `cell [12]:3` is the line that a person sees there.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from types import CodeType, FrameType
from typing import Any

from profkit.core.process import ipython_shell
from profkit.fronts.in_process import Profiling
from profkit.fronts.recording import CellPart, cell_of

RUN = "_run"  # the variable that the run is in afterwards
USAGE = "%profkit STATEMENT, or %%profkit as the first line of a cell; the run is then in " + RUN
_AWAIT = (
    "a cell that awaits runs outside of the magic: write `with profkit.profile():` into it, around the await"
)


def load_ipython_extension(shell: Any) -> None:
    """Add the two magics to IPython: called by `%load_ext profkit`."""
    shell.register_magic_function(profile_cell, "line_cell", "profkit")


def profile_cell(line: str, cell: str | None = None) -> Any:
    """Profile a statement, or the cell, show the page, and return the value of the last expression.

    %profkit STATEMENT      %%profkit [NAME]

    What is raised passes through, after the page. The run is then in the variable `_run`: _run.hot_spots, _run.show().
    Raises UsageError (that of IPython) without a statement, for what is no Python, and for a cell that awaits.
    """
    from IPython.core.error import UsageError

    shell = ipython_shell()
    body = line if cell is None else cell
    if not body.strip():
        raise UsageError(USAGE)
    caller, place, above = _place()
    lines = linecache.getlines(caller.co_filename)[: above - 1] if caller is not None else []
    if cell is not None:
        above += 1  # the line of the magic itself
    code = shell.transform_cell(body)
    statements, last = _compiled(shell, "\n" * (above - 1) + code, place)
    if any(code.co_flags & inspect.CO_COROUTINE for code in (statements, last)):
        raise UsageError(_AWAIT)
    __tracebackhide__ = True  # IPython then shows the frames of the cell alone
    # As a person sees it: the cell without its magics, where the calls of those would stand.
    texts = {place: "".join([*lines, "\n" * (above - 1 - len(lines)), code])}
    part = CellPart((statements, last), caller, texts) if caller is not None else None
    name = (line.strip() if cell is not None else "") or place
    with Profiling(name, show=True, cell=part) as run:
        before = shell.user_ns.get(RUN)  # kept meanwhile: to remove its folder is no part of the cell
        shell.push({RUN: run}, interactive=False)
        exec(statements, shell.user_ns)
        value = eval(last, shell.user_ns)
    del before
    return value


def _place() -> tuple[CodeType | None, str, int]:
    """Return the cell that calls the magic, as code and by name, and the line there; `cell` in a script of IPython."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if (cell := cell_of(frame.f_code.co_filename)) is not None:
            return frame.f_code, cell, frame.f_lineno
        frame = frame.f_back
    return None, "cell", 1


def _compiled(shell: Any, text: str, place: str) -> tuple[Any, Any]:
    """Return all statements, and the last one's value where it is an expression. Raises UsageError for what is no
    Python.
    """
    from IPython.core.error import UsageError

    number = "".join(filter(str.isdigit, place))
    file = shell.compile.cache(text, int(number or shell.execution_count), raw_code=text)
    try:
        tree = ast.parse(text, file)
    except SyntaxError as error:
        raise UsageError(f"{place}:{error.lineno}: {error.msg}") from None
    value: ast.expr = ast.Constant(None)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        value = tree.body.pop().value  # type: ignore[attr-defined]
    last = ast.copy_location(ast.Expression(value), value)
    flags = shell.compile.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return (
        compile(tree, file, "exec", flags, dont_inherit=True),
        compile(ast.fix_missing_locations(last), file, "eval", flags, dont_inherit=True),
    )
