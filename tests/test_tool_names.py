"""What differs by tool or hardware is asked of the `Profiler` and the `Backend`: no other package names one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from profkit.backends import backend_names
from profkit.core.types import PassName
from profkit.profilers.registry import PROFILERS
from tests.conftest import ROOT

PACKAGE = ROOT / "profkit"
TOOLS = sorted(PROFILERS.keys() - set(get_args(PassName)))  # cprofile is the name of a pass, too
_TOOL = re.compile(rf"(?<![\w.-])(?:{'|'.join(TOOLS)})(?!\w)")
BACKENDS = frozenset(backend_names())
# What a fault is made of: a file without any of it has none, and is not parsed.
_TRACE = re.compile(rf"{_TOOL.pattern}|profkit\.profilers|['\"](?:{'|'.join(BACKENDS)})['\"]")
OWNERS = ("profilers/", "backends/")
# Where a name may stand all the same, and what it is there.
ALLOWED = {
    "core/types/readings.py": "kinds of switches, by which the program turns a tool on and off",
    "runtime/region/": "these switches themselves",
    "analysis/summaries/metal.py": "the source of readings that Metal's own tables give",
    "cli/profile.py": "help: the values of --tool",
    "cli/reports.py": "help: the reports that can be read",
    "fronts/pytest_suite.py": "samples that its own workers wrote",
    "fronts/gate.py": "a folder in which benchmarks are looked for",
    "reporting/sentences/": "sentences that name the tool that they are about",
    "runtime/passes/shown_command.py": "endings of files that a command may show",
}


def faults(place: str, source: str) -> Iterator[str]:
    """Every string with a tool's name, import of a tool's modules, and comparison with a backend's name."""
    if not _TRACE.search(source):
        return
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            if found := _TOOL.search(node.value):
                yield f"{place}:{node.lineno} names {found[0]}"
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if parts[:2] == ["profkit", "profilers"] and set(parts) & PROFILERS.keys():
                yield f"{place}:{node.lineno} imports {node.module}"
        elif isinstance(node, ast.Compare) and _is_of_backend(node):
            yield f"{place}:{node.lineno} compares a backend's name"


def _is_of_backend(comparison: ast.Compare) -> bool:
    """Whether something but a device of torch, which has the same names, is compared with a backend's name."""
    sides = [comparison.left, *comparison.comparators]
    names = {
        part.value
        for side in sides
        for part in ast.walk(side)
        if isinstance(part, ast.Constant) and part.value
    }
    return bool(names & BACKENDS) and any("backend" in ast.unparse(side) for side in sides)


@pytest.mark.thorough
def test_no_other_package_names_a_profiler_or_compares_a_backends_name() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith((*OWNERS, *ALLOWED)):
            found += faults(place, path.read_text(encoding="utf-8"))
    assert found == []


def test_each_exception_is_needed() -> None:
    unused = [
        place
        for place in ALLOWED
        if not any(list(faults(place, path.read_text(encoding="utf-8"))) for path in _files(PACKAGE / place))
    ]
    assert unused == []


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


@pytest.mark.parametrize(
    "source",
    [
        "if trace.tool == 'ncu': pass",
        "FIX = 'trace it: nsys profile COMMAND'",
        "from profkit.profilers.xctrace.report import read_exports",
        "cuda = document.backend == 'cuda'",
        "cuda = backend in ('cuda', 'mps')",
    ],
)
def test_a_name_is_seen(source: str) -> None:
    assert len(list(faults("analysis/made_up.py", source))) == 1


@pytest.mark.parametrize(
    "source", ["'''Counted by ncu.'''", "cold = device.type == 'cuda'", "pattern = 'superncu'"]
)
def test_prose_and_devices_of_torch_are_none(source: str) -> None:
    assert list(faults("analysis/made_up.py", source)) == []
