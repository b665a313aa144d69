"""The kernel in an answer: one code block of it, or what is wrong with the answer, as a sentence for the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from profkit.core.formatting import plural
from profkit.kernels.evaluation.sources.names import SUFFIX, FileText, LoadError, parse_text, with_imports

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
# Models that think aloud mark it so; what they try there is no answer.
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
MOST_CHARACTERS = 100_000  # of a kernel: each prompt has it once more


@dataclass(frozen=True)
class FoundCode:
    """The code of an answer. `problem`: what is wrong, for the model; `fault`: why there is nothing to be tested.

    A `load-error` has its code, so that its line can be shown.
    """

    code: str = ""
    problem: str = ""
    fault: Literal["", "no-code", "no-answer", "load-error"] = ""


class _Block(NamedTuple):
    text: str
    closed: bool


def find_code(answer: str, function: str, file: str, *, cut: bool = False) -> FoundCode:
    """The one text in `answer` that defines `function`; `file` is what its errors call it.

    `cut`: the model stopped at its limit of tokens.
    """
    answer = _THOUGHTS.sub("", answer.replace("\r\n", "\n").replace("\r", "\n"))
    blocks = _split_blocks(answer)
    if blocks and not blocks[-1].closed and (cut or not _defines(blocks[-1].text, function)):
        return _no_code(
            "The code block does not end: the answer was cut off. Write a shorter file, and nothing else."
        )
    if not blocks:
        if _defines(answer, function):  # an answer that is a file
            return _checked(answer, function, file)
        reason = "was cut off before its code" if cut else "has no code block"
        return _no_code(
            f"The answer {reason}. Return the whole file in one block that begins with ```python."
        )
    defining = [block.text for block in blocks if _defines(block.text, function)]
    naming = [block.text for block in blocks if function in block.text]
    if not defining and not naming:
        return _no_code(
            f"The answer has {plural(len(blocks), 'code block')}, and none defines `{function}`. Return the whole file "
            "in one block."
        )
    return _checked((defining or naming)[-1], function, file)


def _split_blocks(answer: str) -> list[_Block]:
    """The fenced blocks, in their order. One that is never closed ends with the answer."""
    blocks: list[_Block] = []
    fence, lines = "", list[str]()
    for line in answer.split("\n"):
        match = _FENCE.match(line)
        if not fence and match:
            fence, lines = match[1], []
        elif fence and match and match[1].startswith(fence) and not match[2].strip():
            blocks.append(_Block(_dedented(lines), True))
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        blocks.append(_Block(_dedented(lines), False))
    return blocks


def _dedented(lines: list[str]) -> str:
    """A block in a list is indented as a whole."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    if indent and all(line.startswith(indent) or not line.strip() for line in lines):
        lines = [line[len(indent) :] for line in lines]
    return "\n".join(lines).strip("\n") + "\n"


def _defines(text: str, function: str) -> bool:
    try:
        return parse_text(text[:MOST_CHARACTERS], "answer").kernel_of(_stem(function)) is not None
    except LoadError:
        return False


def _checked(code: str, function: str, file: str) -> FoundCode:
    """The code with the imports that it lacks, or with what keeps it from being loaded."""
    if len(code) > MOST_CHARACTERS:
        return _no_code(f"The file has {len(code):,} characters; {MOST_CHARACTERS:,} are the most.")
    try:
        parsed: FileText = parse_text(code, file)
    except LoadError as error:
        return FoundCode(code, f"{error}.", "load-error")
    if parsed.kernel_of(_stem(function)) is None:
        there = ", ".join(f"`{name}`" for name in sorted(parsed.functions)) or "no function"
        return FoundCode(code, f"The file does not define `{function}`; it defines {there}.", "load-error")
    return FoundCode(with_imports(code))


def _stem(function: str) -> str:
    return function.removesuffix(SUFFIX)


def _no_code(problem: str) -> FoundCode:
    return FoundCode("", problem, "no-code")
