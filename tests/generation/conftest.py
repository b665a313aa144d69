"""A process of tests keeps its environment, and may be looked into: only what a test starts gives both up."""

from __future__ import annotations

import os

import pytest

from profkit.generation import keys


@pytest.fixture(autouse=True)
def no_keys_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of whoever runs the tests is sent anywhere, and none of a test stays for the next one."""
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(keys, "_vault", keys._Vault())
    monkeypatch.setattr(keys, "shield", lambda: None)
