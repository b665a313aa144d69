"""Whoever searches the page for what profkit says finds it there."""

from __future__ import annotations

import re

import pytest

from profkit.tools.nsys import faults as nsys
from profkit.tools.perf import faults as perf
from profkit.tools.valgrind import faults as valgrind
from tests.conftest import ROOT

PAGE = " ".join((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split())
REASONS = [known.reason for room in (nsys, perf, valgrind) for known in room.FAULTS]


@pytest.mark.parametrize("reason", REASONS)
def test_every_fault_of_a_tool_is_explained(reason: str) -> None:
    parts = [part.strip() for part in re.split(r"\{\d\}", reason)]
    assert all(part in PAGE for part in parts), reason
