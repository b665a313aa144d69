"""What a result says to machines: test cases, and messages for a CI system. People read the same in other blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from profkit.reporting.view import Block

CaseState: TypeAlias = Literal["passed", "failure", "error", "skipped", "unknown"]


@dataclass(frozen=True)
class Case:
    """One test case. `message` says why it did not pass, `detail` is the longer text below it.

    What is `unknown` is skipped, and an error where unknown verdicts fail.
    """

    group: str  # readers make a tree of its dots
    name: str
    state: CaseState = "passed"
    message: str = ""
    detail: str = ""
    seconds: float = 0.0
    kind: str = ""  # a short fixed word: the type of a failure


@dataclass(frozen=True)
class Cases(Block):
    """The result as tests, for machines: one suite. It repeats what other blocks tell people."""

    name: str
    cases: tuple[Case, ...]
    started: str = ""  # ISO 8601
    seconds: float = 0.0
    properties: tuple[tuple[str, str], ...] = ()
    output: str = ""


@dataclass(frozen=True)
class Annotations(Block):
    """Messages for a CI system that shows them beside the run, the worst first; people read the same elsewhere."""

    rows: tuple[tuple[Literal["error", "warning", "notice"], str, str], ...]  # level, title, message
