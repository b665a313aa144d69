"""Decide by name which files may come from another machine: a list of those that are wanted.

All others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

ARCHIVE = ".tar"


class FileNames:
    """Names of files below a folder, in which each `#` stands for a number.

    A name that ends with `/` is a folder whose file names only its tool knows: it travels as one archive.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def wants(self, name: str) -> bool:
        """Return whether a file of this name is wanted."""
        return self._files.fullmatch(name) is not None

    def is_document(self, name: str) -> bool:
        """Return whether a folder of this name travels as one archive."""
        return self._documents.fullmatch(name) is not None

    @cached_property
    def _files(self) -> re.Pattern[str]:
        return _any_of(name[:-1] + ARCHIVE if name.endswith("/") else name for name in self._names)

    @cached_property
    def _documents(self) -> re.Pattern[str]:
        return _any_of(name[:-1] for name in self._names if name.endswith("/"))


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern that matches any of the names; without names it matches nothing."""
    return re.compile("|".join(re.escape(name).replace(r"\#", "[0-9]{1,10}") for name in names) or r"(?!)")
