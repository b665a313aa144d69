"""Decide whether two versions are one program: all files that their Python processes used are equal."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profkit.regression.paired.checkout import Version

_PASSED_OVER = (
    "__pycache__",
    ".git",
)  # byte code names its source's time; what git keeps is another for each commit


@dataclass(frozen=True)
class Loaded:
    """Paths that the processes of one run loaded and read.

    `starts`: they started programs of which nothing is seen.
    """

    modules: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    starts: bool = False

    @classmethod
    def of_lines(cls, lines: list[str]) -> Loaded:
        """Parse the lines that the pass `loaded-files` writes."""
        paths: dict[str, set[str]] = {"module": set(), "read": set(), "list": set(), "start": set()}
        for line in lines:
            kind, _, path = line.partition(" ")
            paths.get(kind, set()).add(path)
        modules, read, listed = (frozenset(paths[kind]) for kind in ("module", "read", "list"))
        return cls(modules, read, listed, bool(paths["start"]))


def equal_files(versions: tuple[Version, Version], loaded: tuple[Loaded, Loaded]) -> int | None:
    """Count the files that both load or read if all of them are equal in both.

    None if one differs, or is unknown. What lies outside of both folders is the same for both.
    """
    first, second = versions
    if (
        first.root is None
        or second.root is None
        or any(version.starts or not version.modules for version in loaded)
    ):
        return None
    if [_inside(first, word) for word in first.command] != [_inside(second, word) for word in second.command]:
        return None
    count = 0
    for version, counterpart, mine, theirs in ((*versions, *loaded), (second, first, loaded[1], loaded[0])):
        for path in _own(version, mine.modules | mine.read, theirs.modules | theirs.read):
            twin = _twin(path, version, counterpart)
            if not os.path.isfile(path):  # it was removed again
                continue
            if not os.path.isfile(twin) or not filecmp.cmp(path, twin, shallow=False):
                return None
            count += 1
        for path in _own(version, mine.listed, theirs.listed):
            if _names(path) != _names(_twin(path, version, counterpart)):
                return None
    return count // 2


def _inside(version: Version, word: str) -> str:
    path = Path(word)
    return str(path.relative_to(version.root)) if version.root and path.is_relative_to(version.root) else word


def _twin(path: str, version: Version, other: Version) -> str:
    assert version.root is not None
    assert other.root is not None
    return str(other.root / Path(path).relative_to(version.root))


def _own(version: Version, paths: frozenset[str], others: frozenset[str]) -> Iterator[str]:
    """Yield the paths in the version's own folder that the other version does not use as they are."""
    for path in paths - others:
        root = version.root
        if root is None or not Path(path).is_relative_to(root):
            continue
        if not set(Path(path).relative_to(root).parts) & set(_PASSED_OVER):
            yield path


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name not in _PASSED_OVER)
    except OSError:
        return []
