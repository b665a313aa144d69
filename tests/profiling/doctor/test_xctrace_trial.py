"""A recording that the doctor tries, by the stand-in for xctrace: what it left, and what each failure is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profkit.profilers.xctrace.checks import recording_check

XCTRACE = str(Path(__file__).resolve().parents[2] / "stand_ins" / "xctrace" / "xctrace")


@pytest.mark.parametrize(
    ("scenario", "state", "says"),
    [
        ({}, "ok", "samples of half a second of Python"),
        ({"status": 54}, "ok", "samples"),
        ({"rows": "empty"}, "limited", "no sample is in its tables"),
        ({"rows": "none"}, "limited", "no sample is in its tables"),
        ({"save_fails": "Document Missing Template Error"}, "refused", "was not finished"),
        (
            {"refuse": {"verb": "record", "text": "Failed to attach to target process", "status": 1}},
            "refused",
            "get-task-allow",
        ),
        (
            {"refuse": {"verb": "record", "text": "developer mode is disabled", "status": 1}},
            "refused",
            "developer mode is off",
        ),
        (
            {"refuse": {"verb": "record", "text": "Segmentation fault", "status": 1}},
            "refused",
            "Segmentation fault",
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
