"""The Python that docs/evaluation.md shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.shown import fenced

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_the_python_that_is_shown_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from profkit.kernels.evaluation.sources.files import take_registrations

    monkeypatch.chdir(tmp_path)
    code = "\n".join(fenced(ROOT / "docs" / "evaluation.md", "python"))
    exec(compile(code, "evaluation.md", "exec"), {"__name__": "shown"})
    assert set(take_registrations()) == {"aten::add.Tensor", "relu", "aten::gelu"}
