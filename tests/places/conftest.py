"""What was sent to one place is there at all places of these tests, so it is sent, laid out and compiled once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fill_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Makes a folder the store of a place, with runs of its own; profkit is that of all others.

    Also those of the other workers of the tests: a store may be used by several at once.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "store of places"

    def fill(store: Path) -> Path:
        store.mkdir(0o700, parents=True, exist_ok=True)
        (shared / "code").mkdir(parents=True, exist_ok=True)
        (store / "code").symlink_to(shared / "code")
        return store

    return fill
