"""What a test registers is known to no other one."""

from __future__ import annotations

import pytest

from profkit.kernels.operations import registry


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
