"""How many groups a grouping of pandas makes of the categories of its columns, and of how many rows.

Nothing is called but `len` and the categories of what is pandas' own: no code of the program runs for it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

GROUPS, GROUPED_ROWS = " [groups]", " [grouped rows]"  # behind the number of the line that groups
SPARSE, MANY_GROUPS = 10, 100_000  # groups for each row, and in all: fewer cost little
MOST_GROUPS = 1 << 62
_FILES = ("/pandas/core/groupby/groupby.py", "/pandas/core/groupby/generic.py")


def is_grouping(code: CodeType) -> bool:
    """Return whether this is a method of pandas' groups."""
    return code.co_varnames[:1] == ("self",) and code.co_filename.replace("\\", "/").endswith(_FILES)


def sparse_groups(frame: FrameType) -> tuple[int, int] | None:
    """Return how many groups a method's object makes, and of how many rows; None where most groups may have rows.

    Of columns of categories with observed=False, each combination of these is a group.
    """
    grouped: Any = frame.f_locals.get("self")
    if not _is_pandas(grouped):
        return None
    try:
        held = object.__getattribute__(grouped, "__dict__")
        grouper = held.get("_grouper", held.get("grouper"))
        groupings = object.__getattribute__(grouper, "__dict__")["_groupings"]
        rows, groups = len(held["obj"]) if _is_pandas(held["obj"]) else 0, 1
        for one in groupings:
            known = object.__getattribute__(one, "__dict__")
            column = known.get("grouping_vector")
            if (
                known.get("_observed") is False
                and type(column).__name__ == "Categorical"
                and _is_pandas(column)
            ):
                groups *= len(column.categories)
    except (AttributeError, KeyError, TypeError):
        return None  # another version of pandas
    return (min(groups, MOST_GROUPS), rows) if rows and groups >= max(MANY_GROUPS, SPARSE * rows) else None


def _is_pandas(value: object) -> bool:
    return str(type(value).__module__).partition(".")[0] == "pandas"
