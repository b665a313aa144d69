"""`record --tool xctrace` and its fronts with a stand-in: what lies at REPORT, and what may lie there before."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli_runner import Said, profkit
from tests.xctrace_stand_in import instruments

pytestmark = pytest.mark.usefixtures("no_page")

NOTE = "import sys; open('words', 'w').write(repr(sys.argv[1:]))"
WORDS = ["a b", 'say "x"', "it's", "$HOME", "<script>", "--", "-x"]


def record(
    folder: Path, report: str, *options: str, command: list[str] | None = None, **scenario: object
) -> Said:
    command = command or [sys.executable, "-c", NOTE, *WORDS]
    env = instruments(folder, **scenario).env
    return profkit(
        "record", "--tool", "xctrace", "--report", report, *options, "--", *command, cwd=folder, env=env
    )


@pytest.mark.parametrize("name", ["out.trace", "my 'out\".trace"])
def test_a_report_called_trace_is_the_document(tmp_path: Path, name: str) -> None:
    said = record(tmp_path, name)
    assert said.code == 0, said.err
    assert (tmp_path / name / "form.template").is_file()
    assert (tmp_path / "words").read_text() == repr(WORDS)


@pytest.mark.thorough
def test_a_report_of_any_other_name_is_a_folder_of_tables_that_profkit_reads(tmp_path: Path) -> None:
    said = record(tmp_path, "out tables")
    assert said.code == 0, said.err
    names = {path.name for path in (tmp_path / "out tables").iterdir()}
    assert names >= {"toc.xml", "metal-gpu-intervals.xml", "metal-gpu-state-intervals.xml", "time-info.xml"}
    told = profkit("summarize", "out tables", "--format", "json", cwd=tmp_path)
    assert told.code == 0, told.err
    assert '"backend": "mps"' in told.out


@pytest.mark.thorough
def test_a_marked_region_is_found_in_the_tables_afterwards(tmp_path: Path) -> None:
    code = "import time, profkit\ntime.sleep(0.3)\nwith profkit.region('step'): time.sleep(0.2)"
    said = record(tmp_path, "out", command=[sys.executable, "-c", code])
    assert said.code == 0, said.err
    metal = json.loads(profkit("summarize", "out", "--format", "json", cwd=tmp_path).out)["metal"]
    assert metal["marked"]
    assert 0.19 < metal["span"] < 0.5  # the whole process takes longer


@pytest.mark.thorough
def test_a_recording_is_replaced_only_with_force_and_another_folder_never(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    assert record(tmp_path, "mine").code == 2
    said = record(tmp_path, "mine", "--force")
    assert said.code == 2
    assert "is not replaced" in said.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"
    assert not (tmp_path / "words").exists()
    assert record(tmp_path, "out.trace").code == 0
    (tmp_path / "out.trace" / "old").write_text("old")
    assert record(tmp_path, "out.trace").code == 2
    assert record(tmp_path, "out.trace", "--force").code == 0
    assert not (tmp_path / "out.trace" / "old").exists()


def test_a_workload_that_fails_is_told_with_its_code_and_the_recording_kept(tmp_path: Path) -> None:
    said = record(tmp_path, "out.trace", command=[sys.executable, "-c", "raise SystemExit(7)"])
    assert said.code == 4
    assert "exited with 7" in said.err
    assert (tmp_path / "out.trace" / "form.template").is_file()


def record_with(folder: Path, export: str) -> Said:
    """Record with an xctrace whose export is some bash; `real` is the stand-in, `out` what is to be written."""
    env = instruments(folder).env
    real, broken = shlex.quote(env["PROFKIT_XCTRACE"]), folder / "xctrace"
    broken.write_text(
        f'#!/bin/bash\nreal={real}\nfor out; do :; done\n[ "$1" = export ] || exec "$real" "$@"\n{export}\n'
    )
    broken.chmod(0o755)
    env["PROFKIT_XCTRACE"] = str(broken)
    command = ["record", "--tool", "xctrace", "--report", "my out", "--", sys.executable, "-c", "pass"]
    return profkit(*command, cwd=folder, env=env)


@pytest.mark.parametrize("export", ["exit 0", '"$real" "$@"; truncate -s 300 "$out"', "kill -9 $$"])
def test_a_recording_that_cannot_be_exported_is_kept(tmp_path: Path, export: str) -> None:
    said = record_with(tmp_path, export)
    assert said.code == 3, said.err
    assert "what was recorded is in my out.trace" in said.err
    assert "fix: " in said.err
    assert (tmp_path / "my out.trace" / "form.template").is_file()
    assert not (tmp_path / "my out").exists()


def test_what_xctrace_refuses_is_a_fault_of_the_machine_with_its_fix(tmp_path: Path) -> None:
    refusal = {"verb": "record", "text": "DevToolsSecurity: disabled", "status": 1}
    said = record(tmp_path, "out.trace", refuse=refusal)
    assert said.code == 3, said.err
    assert "developer mode is off" in said.err
    assert "sudo DevToolsSecurity -enable" in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out.trace").exists()
