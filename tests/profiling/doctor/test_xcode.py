"""What the doctor says of Xcode, by what its programs print. The texts are typed after public examples of them."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.types import Check
from profkit.hardware.system import ProgramAnswer
from profkit.profilers.xctrace.checks import Xcode, instruments_checks, judge_xcode
from profkit.profilers.xctrace.find import XctraceAbility
from tests.mac_stand_in import programs

DEVELOPER = "/Applications/Xcode.app/Contents/Developer"
ABLE = XctraceAbility(
    Path(f"{DEVELOPER}/usr/bin/xctrace"),
    "16.0 (17F42)",
    True,
    templates=("CPU Counters", "Metal System Trace", "Time Profiler"),
    instruments=("Metal GPU Counters",),
)
WHOLE = Xcode(
    ProgramAnswer(f"{DEVELOPER}\n".encode(), b"", 0),
    ProgramAnswer(b"Xcode 16.2\nBuild version 16C5032a\n", b"", 0),
    ProgramAnswer(b"Developer mode is currently enabled.\n", b"", 0),
)


def told(xcode: Xcode = WHOLE, xctrace: XctraceAbility = ABLE) -> dict[str, Check]:
    return {check.name: check for check in judge_xcode(xcode, xctrace)}


def test_a_whole_xcode_is_ok_in_every_line() -> None:
    found = told()
    assert {name: check.state for name, check in found.items()} == dict.fromkeys(
        ("Xcode", "xctrace", "templates", "developer mode"), "ok"
    )
    assert (found["Xcode"].version, found["Xcode"].path) == ("16.2", DEVELOPER)
    assert found["xctrace"].version == "16.0 (17F42)"


def test_the_bare_command_line_tools_are_no_xcode() -> None:
    bare = ProgramAnswer(b"/Library/Developer/CommandLineTools\n", b"", 0)
    fix = "sudo xcode-select -s /Applications/Xcode-beta.app/Contents/Developer"
    found = told(replace(WHOLE, selected=bare), XctraceAbility(None, None, False, "not in the tools", fix))
    assert (found["Xcode"].state, found["Xcode"].fix) == ("missing", fix)
    assert "command line tools" in found["Xcode"].detail
    assert found["xctrace"].state == "missing"


@pytest.mark.parametrize(
    "answer", [None, ProgramAnswer(b"", b"xcode-select: error: unable to get active developer directory", 2)]
)
def test_no_developer_tools_at_all(answer: ProgramAnswer | None) -> None:
    found = told(replace(WHOLE, selected=answer), XctraceAbility(None, None, False, "no xcrun"))
    assert found["Xcode"].state == "missing"
    assert "install Xcode" in (found["Xcode"].fix or "")


def test_an_xcode_that_does_not_start_is_said_with_its_own_words() -> None:
    found = told(replace(WHOLE, version=ProgramAnswer(b"", b"dyld: Library not loaded\n", 134)))
    assert (found["Xcode"].state, "dyld" in found["Xcode"].detail) == ("limited", True)


def test_developer_mode_off_is_one_line_to_type() -> None:
    found = told(
        replace(WHOLE, developer_mode=ProgramAnswer(b"Developer mode is currently disabled.\n", b"", 0))
    )
    assert found["developer mode"].state == "refused"
    assert "DevToolsSecurity -enable" in (found["developer mode"].fix or "")
    for unknown in (None, ProgramAnswer(b"", b"", 1)):
        assert told(replace(WHOLE, developer_mode=unknown))["developer mode"].state == "limited"


def test_a_template_that_is_missing_is_named_with_what_it_is_for() -> None:
    found = told(xctrace=replace(ABLE, templates=("Time Profiler",)))
    assert found["templates"].state == "limited"
    assert "Metal System Trace (what the GPU did, and when)" in found["templates"].detail
    assert "Time Profiler" not in found["templates"].detail
    assert told(xctrace=replace(ABLE, templates=()))["templates"].state == "limited"


def test_an_xctrace_that_does_not_answer_is_refused_with_its_reason() -> None:
    found = told(xctrace=replace(ABLE, works=False, version=None, reason="crashed", fix="reinstall"))
    assert (found["xctrace"].state, found["xctrace"].detail, found["xctrace"].fix) == (
        "refused",
        "crashed",
        "reinstall",
    )
    assert "templates" not in found


def test_all_of_it_on_a_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xctrace = tmp_path / "xctrace"
    listed = "== Standard Templates ==\nMetal System Trace\nTime Profiler\nCPU Counters\n"
    xctrace.write_text(
        '#!/bin/sh\ncase "$*" in\nversion) echo "xctrace version 16.0 (17F42)";;\n'
        f'"list templates") printf "{listed}";;\nesac\n'
    )
    xctrace.chmod(0o755)
    answers: dict[str, str | int] = {
        "xcode-select -p": f"{DEVELOPER}\n",
        "xcodebuild -version": "Xcode 16.2\nBuild version 16C5032a\n",
        "DevToolsSecurity -status": "Developer mode is currently enabled.\n",
        "xcrun --find xctrace": f"{xctrace}\n",
    }
    monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", answers)))
    monkeypatch.delenv("PROFKIT_XCTRACE", raising=False)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    found = {check.name: check.state for check in instruments_checks()}
    assert {
        name: found[name] for name in ("Xcode", "xctrace", "templates", "developer mode")
    } == dict.fromkeys(("Xcode", "xctrace", "templates", "developer mode"), "ok")
