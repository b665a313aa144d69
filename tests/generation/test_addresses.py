"""What of an address is written down."""

from __future__ import annotations

import pytest

from profkit.generation.clients.keys import without_secrets


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("https://user:p@ss@host:8000/v1?key=secret", "https://host:8000/v1"),
        ("--base-url=http://token@host/v1", "--base-url=http://host/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("is it a?b", "is it a?b"),
    ],
)
def test_a_command_line_is_written_without_users_passwords_and_queries(word: str, written: str) -> None:
    assert without_secrets([word]) == (written,)
