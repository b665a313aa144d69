"""The lines that differ between two versions, and the functions in which they lie.

Comments, docstrings and empty lines are no part of it: they make nothing slower.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
# Languages with functions in braces: what git takes for the function of a line is only the last one that began above.
IN_BRACES = frozenset((
    ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".cu", ".cuh", ".m", ".mm", ".metal", ".go", ".rs",
    ".java", ".js", ".ts", ".swift", ".kt", ".cs",
))  # fmt: skip
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n]){1,8}'|^[ \t]*\#(?:\\\n|[^\n])*|[{};]""",
    re.DOTALL | re.MULTILINE,
)
_NAME = re.compile(r"([A-Za-z_~][A-Za-z0-9_]*)\s*(?:<[^<>()]*>\s*)?\(")
_NO_FUNCTION = frozenset((
    "if", "for", "while", "switch", "catch", "return", "sizeof", "else", "do", "match", "loop", "defined", "alignas",
    "decltype", "__attribute__", "__declspec", "__launch_bounds__", "requires", "noexcept", "throw", "synchronized",
    "using", "lock", "guard",
))  # fmt: skip
_COMMENT = re.compile(r"//|/\*|\*/|\*(\s|$)")


@dataclass(frozen=True)
class ChangedLines:
    """Lines `first` to `last` of `path`, as the candidate has them; `context` is the function that git sees there.

    `removed`: what was taken out with nothing in its place; it stood below the line `first`.
    """

    path: str
    first: int
    last: int
    context: str = ""
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionLines:
    """A function from its first line (a decorator counts) to its last; `body` is where what it does begins."""

    name: str
    first: int
    last: int
    body: int


def changed_lines(diff: str) -> Iterator[ChangedLines]:
    """The hunks of a diff without context (`git diff -U0`), of lines that were only taken out the one above.

    Those in which only comments or empty lines differ are left out.
    """
    path, wanted = "", 0  # lines of a hunk that follow: what they hold is the files' own, and no header
    found: ChangedLines | None = None
    old: list[str] = []
    new: list[str] = []
    for line in diff.split("\n"):
        if wanted and line[:1] in ("+", "-"):
            wanted -= 1
            (new if line[0] == "+" else old).append(line[1:])
            if not wanted and found is not None:
                yield from _of_code(found, old, new)
        elif wanted and line[:1] == "\\":
            continue
        elif line.startswith("+++ "):
            name = line[4:].rstrip("\t")
            path, wanted = name[2:] if name.startswith("b/") else "", 0
        elif match := _HUNK.match(line):
            start, count = int(match[2]), int(match[3] or 1)
            wanted, old, new = int(match[1] or 1) + count, [], []
            first = max(1, start)
            found = ChangedLines(path, first, max(first, start + count - 1), match[4]) if path else None


def _of_code(lines: ChangedLines, old: list[str], new: list[str]) -> Iterator[ChangedLines]:
    gone = [text for text in old if is_code(text, lines.path)]
    if any(is_code(text, lines.path) for text in new):
        yield lines
    elif gone and not new:
        yield ChangedLines(lines.path, lines.first, lines.last, lines.context, tuple(gone))
    elif gone:  # a comment in the place of code
        yield lines


def is_code(text: str, path: str) -> bool:
    """Whether a line does anything: it is not empty, and no comment."""
    text = text.strip()
    suffix = PurePosixPath(path).suffix
    if suffix in IN_BRACES:
        return bool(text) and not _COMMENT.match(text)
    return bool(text) and not (suffix in (".py", ".pyx", ".pyi") and text.startswith("#"))


def spans_of(path: str, text: str) -> list[FunctionLines] | None:
    """The functions of a file; None where its language is not known, or it cannot be read as that."""
    if path.endswith(".py"):
        return _python_spans(text)
    return _spans_in_braces(text) if PurePosixPath(path).suffix in IN_BRACES else None


def docstring_lines(path: str, text: str) -> frozenset[int]:
    """The lines of a Python file that are a string and nothing else."""
    if not path.endswith(".py"):
        return frozenset()
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError):
        return frozenset()
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def _python_spans(text: str) -> list[FunctionLines] | None:
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError):
        return None
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min((mark.lineno for mark in node.decorator_list), default=node.lineno)
            spans.append(FunctionLines(node.name, first, node.end_lineno or node.lineno, node.body[0].lineno))
    return spans


def _spans_in_braces(text: str) -> list[FunctionLines]:
    """Functions with a body in braces, by the word before the first parenthesis of what leads to the brace.

    A macro that opens a brace which another closes makes the rest of the file wrong, as it does for git.
    """
    spans: list[FunctionLines] = []
    stack: list[tuple[str | None, int, int]] = []
    header: list[str] = []
    begin, position, line = 1, 0, 1
    for match in _TOKEN.finditer(text):
        between = text[position : match.start()]
        if not "".join(header).strip():
            header = []
            begin = line + between[: len(between) - len(between.lstrip())].count("\n")
        header.append(between)
        line += between.count("\n")
        token = match[0]
        if token == "{":
            stack.append((_function_name("".join(header)), begin, line))
            header = []
        elif token == "}":
            header = []
            if stack:
                name, first, body = stack.pop()
                if name is not None:
                    spans.append(FunctionLines(name, first, line, body))
        elif token == ";" and "".join(header).count("(") <= "".join(header).count(")"):
            header = []  # else it is one inside `for (;;)`
        line += token.count("\n")
        position = match.end()
    return spans


def _function_name(header: str) -> str | None:
    """The name of the function that a header begins; None for a block, a class, a list of values."""
    words = header.strip().rstrip("\\")
    names = _NAME.findall(words)
    first = re.match(r"[A-Za-z_]+", words)
    if not names or (first is not None and first[0] in _NO_FUNCTION):
        return None
    if "=" in words.split("(", 1)[0] and "operator" not in words:
        return None
    return next((name for name in names if name not in _NO_FUNCTION and name != "func"), None)  # of Go
