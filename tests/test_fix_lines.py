"""A line that a user is told to type: every value in it that somebody chose is quoted for the shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.conftest import ROOT

RAISED = {
    "Fault",
    "Interrupted",
    "MachineError",
    "NoCheckout",
    "PlaceLost",
    "PlaceUnreachable",
    "UnreadableReport",
    "UsageError",
    "WorkloadError",
    "writing",
}
# What is named by profkit itself: options, names of its tables, whole lines that are made elsewhere, and logs by step.
OURS = {
    "axis",
    "code_options(wanted)",
    "count",
    "example",
    "fault.fix",
    "format.command",
    "function",
    "kind",
    "choices[-1]",
    "line",
    "log",
    "more",
    "needed",
    "option",
    "options.depth",
    "recorded.log.name",
    "reset",
    "resume_text(document, folder)",
    "self._format.command",
    "shown",
    "some",
    "step.name",
    "tool",
    "variable",
    "wanted",
    "what.split()[1]",
}


def _fix_of(call: ast.Call) -> ast.expr | None:
    """The second argument of a fault, or `fix=` of any call."""
    for keyword in call.keywords:
        if keyword.arg in ("fix", "try_it"):
            return keyword.value
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return call.args[1] if name in RAISED and len(call.args) > 1 else None


def _values(node: ast.AST) -> Iterator[ast.FormattedValue]:
    """The values of its texts; not those inside of what is quoted as a whole."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("shlex.quote", "shlex.join"):
        return
    if isinstance(node, ast.FormattedValue):
        yield node
    for inner in ast.iter_child_nodes(node):
        yield from _values(inner)


def _is_safe(value: ast.FormattedValue) -> bool:
    """Quoted, a number, of ours, or made of a table of ours."""
    text, form = ast.unparse(value.value), ast.unparse(value.format_spec) if value.format_spec else ""
    joined = text.startswith(("', '.join(", "','.join(", "'|'.join(", "' or '.join(", "' '.join(missing)"))
    number = form.rstrip("'\"").endswith(("f", "g", "d"))
    ours = text in OURS or joined or text.startswith(("superuser_command(", "clean_name("))
    return text.isupper() or text.startswith(("shlex.", "quoted")) or number or ours


def test_every_value_in_a_fix_line_is_quoted() -> None:
    found = []
    for file in sorted((ROOT / "profkit").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            fix = _fix_of(node) if isinstance(node, ast.Call) else None
            values = [value for value in _values(fix) if not _is_safe(value)] if fix is not None else []
            found += [
                f"{file.relative_to(ROOT)}:{value.lineno} {ast.unparse(value.value)}" for value in values
            ]
    assert found == []
