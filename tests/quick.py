"""What `./check.sh` leaves out, and `./check.sh --all` does not: the tests that are marked thorough.

    python -m pytest -p tests.quick

Says how many they are, among what is skipped.
"""

from __future__ import annotations

from typing import Any

import pytest

REASON = "thorough: left out here, and run by ./check.sh --all"
LEFT_OUT = "left_out"  # in what a worker hands to the process that prints
_left_out = 0


def is_thorough(item: pytest.Item) -> bool:
    """Return whether a test is left out."""
    return item.get_closest_marker("thorough") is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of what is left by `-k` and `-m`."""
    global _left_out
    left_out = [item for item in items if is_thorough(item)]
    items[:] = [item for item in items if not is_thorough(item)]
    config.hook.pytest_deselected(items=left_out)
    _left_out = len(left_out)
    if hasattr(config, "workeroutput"):
        config.workeroutput[LEFT_OUT] = _left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the number from a worker; each of them has the same."""
    global _left_out
    _left_out = getattr(node, "workeroutput", {}).get(LEFT_OUT, _left_out)


def left_out() -> int:
    """Return how many tests were left out."""
    return _left_out
