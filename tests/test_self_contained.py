"""A clone has all that its tests need: they name no path outside of it, and are collected without torch, too."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

TESTS = ROOT / "tests"
# Folders beside the repository, and variables that name one. In two words, so that this file has none of them.
OUTSIDE = re.compile(
    "|".join((r"shared" r"/fixtures", r"shared['\"] */ *['\"]fix" r"tures", r"PROFKIT_" r"FIXTURES"))
)
# Above the root: `ROOT.parent`, and the parents of a file that are as many as its folders are deep.
ABOVE = re.compile(r"\bROOT\.parents?\b")
# Where a build or a user has been at home; those of examples are called user, me, somebody and the like.
PRIVATE = re.compile(rb"/tmp/python-build|/home/(?!user\b|me\b)[a-z]|/Users/(?!Shared\b)[a-z]|/root/|/work/")


def files() -> list[Path]:
    return sorted(TESTS.rglob("*.py"))


def outside(path: Path, text: str) -> Iterator[str]:
    """What of a test file is outside of the repository."""
    place = path.relative_to(ROOT)
    for match in (*OUTSIDE.finditer(text), *ABOVE.finditer(text)):
        yield f"{place}: {match[0]}"
    for match in re.finditer(r"__file__\)(?:\.resolve\(\))?(?:\.parents\[(\d+)\]|((?:\.parent)+))", text):
        steps = int(match[1]) if match[1] else match[2].count("parent") - 1
        if steps >= len(place.parts):
            yield f"{place}: {match[0]}"


def test_no_test_names_a_path_outside_of_the_repository() -> None:
    others = [path for path in files() if path != Path(__file__)]  # which has examples
    found = [one for path in others for one in outside(path, path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'F = ROOT.parent / "data"',
        'F = Path(__file__).parents[2] / "data"',
        "F = Path(__file__).resolve().parent.parent.parent",
        'F = "../shared' + '/fixtures"',
        'os.environ["PROFKIT_' + 'FIXTURES"]',
    ],
)
def test_a_path_outside_is_seen(text: str) -> None:
    assert len(list(outside(TESTS / "test_made_up.py", text))) == 1


@pytest.mark.parametrize(
    "text", ["F = Path(__file__).parents[1]", "F = Path(__file__).resolve().parent.parent"]
)
def test_the_root_is_inside(text: str) -> None:
    assert list(outside(TESTS / "test_made_up.py", text)) == []


def test_no_recording_has_a_path_of_the_machine_that_it_came_from() -> None:
    found = []
    for path in sorted(filter(Path.is_file, (TESTS / "data").rglob("*"))):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        found += [f"{path.name}: {match[0]!r}" for match in PRIVATE.finditer(data)]
    assert found == []


@pytest.mark.thorough
def test_all_tests_can_be_collected_where_torch_is_not_installed(tmp_path: Path) -> None:
    for name in ("torch", "triton"):
        text = f"raise ModuleNotFoundError(\"No module named '{name}'\", name={name!r})\n"
        (tmp_path / f"{name}.py").write_text(text)
    naming = [
        path for path in files() if path.name.startswith("test_") and "torch" in path.read_text("utf-8")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *map(str, naming)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
