"""The n-th write, open, read, rename or allocation fails: what a command must bear, one call after the other.

`failing(kind, n)` lets the n-th call of that kind fail inside the process, as a full or broken disk would.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

KINDS = ("open", "write", "read", "replace", "memory")


class Counter:
    """How many calls there were, and whether the n-th one failed."""

    def __init__(self, n: int, error: Callable[[], BaseException]) -> None:
        self.n, self.error = n, error
        self.calls = 0

    @property
    def has_failed(self) -> bool:
        """Whether the command came as far as the call that fails."""
        return self.calls >= self.n

    def count(self) -> None:
        """One more call; the n-th raises."""
        self.calls += 1
        if self.calls == self.n:
            raise self.error()


def _counted(counter: Counter, call: Callable[..., Any], wanted: Callable[..., bool]) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        if wanted(*arguments, **named):
            counter.count()
        return call(*arguments, **named)

    return counted


@contextlib.contextmanager
def failing(kind: str, n: int, inside: Path) -> Iterator[Counter]:
    """Within it the n-th call of `kind` on a file inside of the folder fails; "memory": the n-th JSON read or made."""
    full = lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(inside))  # noqa: E731
    broken = lambda: OSError(errno.EIO, os.strerror(errno.EIO), str(inside))  # noqa: E731
    errors: dict[str, Callable[[], BaseException]] = {"read": broken, "memory": MemoryError}
    counter = Counter(n, errors.get(kind, full))

    def is_inside(path: Any, *_: Any, **named: Any) -> bool:
        if not isinstance(path, str | os.PathLike):
            return False
        if any(value is not None for name, value in named.items() if name.endswith("dir_fd")):
            return True  # below a folder that is held open
        return os.path.abspath(path).startswith((str(inside), "/proc/self/fd/"))  # the same, by its handle

    def writes(path: Any, flags: Any = "r", *_: Any, **named: Any) -> bool:
        if isinstance(flags, int):
            return is_inside(path, **named) and bool(flags & (os.O_WRONLY | os.O_RDWR))
        return is_inside(path, **named) and any(mark in flags for mark in "wxa+")

    def reads(path: Any, flags: Any = "r", *_: Any, **named: Any) -> bool:
        return is_inside(path, **named) and not writes(path, flags, **named)

    with contextlib.ExitStack() as stack:

        def put(owner: Any, name: str, wanted: Callable[..., bool]) -> None:
            stack.enter_context(
                mock.patch.object(owner, name, _counted(counter, getattr(owner, name), wanted))
            )

        if kind in ("open", "read"):
            chosen = writes if kind == "open" else reads
            put(os, "open", chosen)
            for owner in (builtins, io):
                put(owner, "open", chosen)
        elif kind == "write":
            put(os, "write", lambda *_: True)
            put(os, "fsync", lambda *_: True)
            put(os, "mkdir", is_inside)
        elif kind == "replace":
            for name in ("replace", "rename", "link", "unlink"):
                put(os, name, is_inside)
        else:
            import json

            for name in ("loads", "dumps"):
                put(json, name, lambda *_, **__: True)
        yield counter
