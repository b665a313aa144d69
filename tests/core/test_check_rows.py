"""Checks as rows: which row is told, and that every row of every table can be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profkit.backends import instruments
from profkit.backends.cuda import run as cuda_run
from profkit.core import tables
from profkit.core.errors import Fault
from profkit.core.tables import judge_rows, load_yaml
from profkit.core.types import Check, Counter, Gpu
from profkit.hardware.conditions import judge_noise
from profkit.profilers.ncu.probe import NcuAbility
from profkit.profilers.perf import probe as perf
from profkit.profilers.programs import ToolAbility
from profkit.profilers.valgrind import probe as valgrind
from profkit.profilers.xctrace import export as xctrace
from tests.conftest import ROOT

ROWS = """
tool:
  tool {index}:
  - missing: "{reason}: none"
    when: not path
    fix: "{fix}"
  - limited: "{free:.1f} left"
    when: free < 2 and known path
    fix: "{fix}"
    shows: path version
  - ok: works
    when: unknown doubt
"""
GOOD: dict[str, Any] = {"index": 3, "path": "/t", "version": None, "reason": "r {x}", "fix": None}


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"free": 1.0, "doubt": None}, [Check("tool 3", "limited", "1.0 left", None, "/t", None)]),
        ({"free": 2.0, "doubt": None}, [Check("tool 3", "ok", "works")]),
        ({"free": None, "doubt": None}, [Check("tool 3", "ok", "works")]),
        ({"free": 2.0, "doubt": ""}, []),
        ({"path": None, "fix": "do {it}"}, [Check("tool 3", "missing", "r {x}: none", "do {it}")]),
    ],
)
def test_the_first_row_that_holds_is_told_and_no_row_is_no_check(
    tmp_path: Path, facts: dict[str, Any], told: list[Check]
) -> None:
    (tmp_path / "checks.yaml").write_text(ROWS)
    assert list(judge_rows(tmp_path / "checks.yaml", "tool", GOOD | facts)) == told


@pytest.mark.parametrize(("terms", "error"), [("pth", KeyError), ("path or version", ValueError)])
def test_a_table_that_asks_for_what_nobody_found_out_does_not_pass(
    tmp_path: Path, terms: str, error: type[Exception]
) -> None:
    (tmp_path / "checks.yaml").write_text(ROWS.replace("not path", terms))
    with pytest.raises(error):
        list(judge_rows(tmp_path / "checks.yaml", "tool", GOOD))


GPU = Gpu("GPU", 0, "9.0", "GH100", 132, 150 << 30, driver="580")
ABLE = (Path("/tool"), "1", True)
JUDGES: tuple[Callable[[], Any], ...] = (
    lambda: judge_noise(0.1, "x", 1.0, 8),
    lambda: perf.judge_perf(
        perf.PerfAbility("/perf", "6", True, census=(Counter("cycles", 1.0, "measured"),))
    ),
    lambda: valgrind.judge_valgrind(valgrind.ValgrindAbility(*ABLE)),
    lambda: cuda_run.judge_cuda((GPU,), NcuAbility(*ABLE), ToolAbility(*ABLE)),
    lambda: cuda_run.device_missing(Fault("no GPU")),
    lambda: instruments.judge_mps((GPU,), ToolAbility(*ABLE)),
    lambda: (
        instruments.mps_checks() if sys.platform != "darwin" else judge_rows(instruments._CHECKS, "elsewhere")
    ),
    lambda: xctrace.judge_xctrace(ToolAbility(*ABLE)),
)


class Parts(dict[str, Any]):
    """The parts of a table, which notes those that are asked for."""

    asked: set[tuple[Path, str]] = set()  # noqa: RUF012 - one for all tables

    def __init__(self, path: Path) -> None:
        """Each row becomes a check of its own."""
        self.path = path
        for part, told in load_yaml(path).items():
            self[part] = {f"{name} {i}": [row] for name, rows in told.items() for i, row in enumerate(rows)}

    def __getitem__(self, part: str) -> Any:
        """The part, by its name."""
        self.asked.add((self.path, part))
        return super().__getitem__(part)


def test_every_row_of_every_table_has_its_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is told as though it held: a rare row would else be the first to say that a name in it is wrong."""
    really_holds = tables._term_holds
    monkeypatch.setattr(tables, "_load_once", Parts)
    monkeypatch.setattr(tables, "_term_holds", lambda term, facts: really_holds(term, facts) or True)
    for judge in JUDGES:
        assert list(judge())
    written = {(path, part) for path in ROOT.glob("profkit/*/**/checks.yaml") for part in load_yaml(path)}
    unasked = {part for _, part in written - Parts.asked}
    assert unasked <= {"frames on a Mac", "elsewhere", "no peaks"}
