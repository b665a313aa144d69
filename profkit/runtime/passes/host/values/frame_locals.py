"""The variables of a frame, without harm to the program that may look at them itself.

Before Python 3.13 `f_locals` of a function's frame is a dict that the frame keeps: it is brought up to date at each
access, and it is the very dict that `locals()` gives to the program.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from types import CodeType, FrameType

_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: of a function, and not of a module or a class
_IS_A_COPY = sys.version_info < (3, 13)
_GIVE_LOCALS = frozenset(("locals", "vars", "dir", "eval", "exec"))


def keeps_locals(code: CodeType) -> bool:
    """Return whether a function may keep the dict of its own variables: it is not to be looked at then."""
    return _IS_A_COPY and not _GIVE_LOCALS.isdisjoint(code.co_names)


def let_go(frame: FrameType, known: dict[str, object]) -> None:
    """Empty the copy of its variables that a frame keeps, with what these held; not where somebody else has it, too.

    `known` is the caller's only reference to it.
    """
    if _IS_A_COPY and frame.f_code.co_flags & _OPTIMIZED and _references(known) <= _ALONE:
        known.clear()


def _references(known: dict[str, object]) -> int:
    return sys.getrefcount(known)


def _count_alone() -> int:
    """Return the references to a dict that a frame, a caller of `let_go`, and `let_go` have."""
    known = sys._getframe().f_locals
    return _references(known) + 1


_ALONE = _count_alone()
