"""What every test of a shell front starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shell.fronts import Project, make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project folder with an environment in it."""
    made = make_project(tmp_path)
    made.stub(made.folder / ".venv/bin/python")
    return made
