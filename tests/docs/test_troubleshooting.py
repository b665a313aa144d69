"""Whoever searches the page for what profkit says finds it there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from profkit.profilers.ncu import faults as ncu
from profkit.profilers.ncu.faults import RESTRICTED
from profkit.profilers.nsys import command as nsys
from profkit.profilers.perf import command as perf
from profkit.profilers.valgrind import command as valgrind
from profkit.profilers.xctrace import command as xctrace
from tests.conftest import ROOT

PAGE = " ".join((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split())
REASONS = [
    RESTRICTED,
    *(
        known.reason
        for tool in (ncu, nsys, perf, valgrind, xctrace)
        for known in tool.known_faults()
        if not known.exits
    ),
]


@pytest.mark.parametrize("reason", REASONS)
def test_every_fault_of_a_tool_is_explained(reason: str) -> None:
    parts = [part.strip() for part in re.split(r"\{\d\}", reason)]
    assert all(part in PAGE for part in parts), reason


@pytest.mark.parametrize(
    "text",
    [
        "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
        "Profiling failed because a driver resource was unavailable.",
        "No kernels were profiled.",
        "Cuda driver is not compatible with Nsight Compute.",
        "Failed to find metric",
        "Backing up device memory in system memory.",
        "Failed to save memory for replay",
        "Failed to connect to process",
        "terminated before first instrumented API call.",
        "UnknownError",
        "ncu: command not found",
        "No reports were generated",
        "does not contain CUDA kernel data.",
        "Subscribe returned 999: CUPTI_ERROR_UNKNOWN",
    ],
)
def test_what_nvidias_tools_print_is_found_by_its_own_words(text: str) -> None:
    assert text in PAGE


@pytest.mark.parametrize(
    "text",
    [
        "requires Xcode, but active developer directory '/Library/Developer/CommandLineTools' is a command line tools",
        "tool not found",
        "Export failed: Document Missing Template Error",
        "The log archive is corrupt or incomplete",
        "No configuration information received, will have to guess",
        "Selected counter profile is not supported on target device",
        "RT Unit Active",
        "Shader Timeline: Disabled",
        "Counter Set: (null)",
        "already exists",
        "65 bytes",
    ],
)
def test_what_apples_tools_print_is_found_by_its_own_words(text: str) -> None:
    assert text in PAGE


SECTIONS = ("Reports in other forms", "Histories", "Comparing", "Nightlies")


@cache
def _templates() -> set[tuple[str, ...]]:
    """Every text in profkit's sources as its fixed parts, between which something is filled in."""
    found = set()
    for file in (ROOT / "profkit").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "\0" for v in node.values]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                parts = [node.value]
            else:
                continue
            fixed = " ".join("".join(map(str, parts)).split()).split("\0")
            found.add(tuple(part for part in fixed if part.strip()))
    return found - {()}


def _says(template: tuple[str, ...], shown: str) -> bool:
    """Whether the text is of this template: all of it with its gaps filled, or a piece of one of its parts."""
    if all(any(piece in part for part in template) for piece in _pieces(shown)):
        return True
    if sum(map(len, template)) < 0.6 * len(shown) or not all(part in shown for part in template):
        return False
    return re.search(".*?".join(map(re.escape, template)), shown) is not None


def _pieces(shown: str) -> list[str]:
    return [piece.strip() for piece in shown.split("...") if len(piece.strip()) > 2]


def _shown() -> list[str]:
    """What stands in code at the head of a row in the sections on what profkit itself says."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    sections = [text.partition(f"\n## {title}\n")[2].partition("\n## ")[0] for title in SECTIONS]
    rows = [row for body in sections for row in body.splitlines() if row.startswith("| `")]
    found = [span for row in rows for span in re.findall(r"`([^`]+)`", row.split("|")[1])]
    return [" ".join(span.split()) for span in found]


def test_what_profkit_is_said_to_say_it_says() -> None:
    """A message that was reworded leaves the page behind."""
    assert len(_shown()) > 10
    assert [text for text in _shown() if not any(_says(template, text) for template in _templates())] == []


@pytest.mark.parametrize(
    "text", ["html is for viewers alone", "was written by a later profkit", "Parquet is written by arrow"]
)
def test_what_it_does_not_say_is_seen(text: str) -> None:
    assert not any(_says(template, text) for template in _templates())
