"""What the doctor says of xctrace, by what its programs print. The texts are typed after public examples of them."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.types import Check
from profkit.profilers.programs import ToolAbility
from profkit.profilers.xctrace.export import judge_xctrace
from tests.mac_stand_in import programs

DEVELOPER = "/Applications/Xcode.app/Contents/Developer"
ABLE = ToolAbility(Path(f"{DEVELOPER}/usr/bin/xctrace"), "16.0 (17F42)", True)


def told(xctrace: ToolAbility = ABLE) -> dict[str, Check]:
    return {check.name: check for check in judge_xctrace(xctrace)}


def test_an_xctrace_that_does_not_answer_is_refused_with_its_reason() -> None:
    found = told(replace(ABLE, works=False, version=None, reason="crashed", fix="reinstall"))
    assert (found["xctrace"].state, found["xctrace"].detail, found["xctrace"].fix) == (
        "refused",
        "crashed",
        "reinstall",
    )


def test_all_of_it_on_a_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xctrace = tmp_path / "xctrace"
    xctrace.write_text('#!/bin/sh\n[ "$*" = version ] && echo "xctrace version 16.0 (17F42)"\n')
    xctrace.chmod(0o755)
    answers: dict[str, str | int] = {
        "xcrun --find xctrace": f"{xctrace}\n",
    }
    monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", answers)))
    monkeypatch.delenv("PROFKIT_XCTRACE", raising=False)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    found = {check.name: check.state for check in judge_xctrace()}
    assert found == {"xctrace": "ok"}
