"""What the doctor says of xctrace, by what its programs print. The texts are typed after public examples of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import Check
from profkit.profilers.xctrace.checks import judge_xctrace, recording_check
from profkit.profilers.xctrace.find import XctraceAbility

DEVELOPER = "/Applications/Xcode.app/Contents/Developer"
ABLE = XctraceAbility(
    Path(f"{DEVELOPER}/usr/bin/xctrace"),
    "16.0 (17F42)",
    True,
    templates=("CPU Counters", "Metal System Trace", "Time Profiler"),
    instruments=("Metal GPU Counters",),
)


def told(xctrace: XctraceAbility = ABLE) -> dict[str, Check]:
    return {check.name: check for check in judge_xctrace(xctrace)}


def test_an_xctrace_that_lists_all_templates_is_ok() -> None:
    assert {name: check.state for name, check in told().items()} == {"xctrace": "ok", "templates": "ok"}
    assert told()["xctrace"].version == "16.0 (17F42)"
    absent = told(XctraceAbility(None, None, False, "there is no xcrun here", "install Xcode"))
    assert (absent["xctrace"].state, absent["xctrace"].fix) == ("missing", "install Xcode")


def test_an_xctrace_that_does_not_answer_is_refused_with_its_reason() -> None:
    found = told(replace(ABLE, works=False, version=None, reason="crashed", fix="reinstall"))
    assert (found["xctrace"].state, found["xctrace"].detail, found["xctrace"].fix) == (
        "refused",
        "crashed",
        "reinstall",
    )
    assert "templates" not in found


# ------------------------------------------------------------ test_xctrace_trial

XCTRACE = str(Path(__file__).resolve().parents[2] / "stand_ins" / "xctrace" / "xctrace")


@pytest.mark.parametrize(
    ("scenario", "state", "says"),
    [
        ({}, "ok", "samples of half a second of Python"),
        ({"rows": "empty"}, "limited", "no sample is in its tables"),
        ({"save_fails": "Document Missing Template Error"}, "refused", "was not finished"),
        (
            {"refuse": {"verb": "record", "text": "Failed to attach to target process", "status": 1}},
            "refused",
            "get-task-allow",
        ),
    ],
)
def test_a_recording_is_tried(
    scenario: dict[str, Any], state: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    monkeypatch.setattr(
        "profkit.profilers.xctrace.checks._BUSY", "pass"
    )  # the tables were recorded elsewhere
    monkeypatch.setenv("XCTRACE_SCENARIO", str(tmp_path / "scenario.json"))
    [check] = recording_check(XCTRACE)
    assert (check.name, check.state) == ("xctrace recording", state), check.detail
    assert says in check.detail
