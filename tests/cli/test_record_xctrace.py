"""`record --tool xctrace` and its fronts with a stand-in: what lies at REPORT, and what may lie there before."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.errors import MachineError
from profkit.hardware.machine import read_machine
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.xctrace.record import collect_report
from tests.cli_runner import Said, profkit
from tests.conftest import ROOT
from tests.xctrace_stand_in import STAND_INS, instruments, mac_path

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


def test_a_report_of_any_other_name_is_a_folder_of_tables_that_profkit_reads(tmp_path: Path) -> None:
    said = record(tmp_path, "out tables")
    assert said.code == 0, said.err
    names = {path.name for path in (tmp_path / "out tables").iterdir()}
    assert names >= {"toc.xml", "metal-gpu-intervals.xml", "metal-gpu-state-intervals.xml", "time-info.xml"}
    told = profkit("summarize", "out tables", "--format", "json", cwd=tmp_path)
    assert told.code == 0, told.err
    assert '"backend": "mps"' in told.out


def test_samples_of_the_cpu_are_recorded_by_the_time_profiler_and_read(tmp_path: Path) -> None:
    said = record(tmp_path, "on the cpu", "--what", "cpu")
    assert said.code == 0, said.err
    told = profkit("summarize", "on the cpu", "--format", "json", cwd=tmp_path)
    assert told.code == 0, told.err
    assert '"backend": "cpu"' in told.out


def test_a_marked_region_is_found_in_the_tables_afterwards(tmp_path: Path) -> None:
    code = "import time, profkit\ntime.sleep(0.3)\nwith profkit.region('step'): time.sleep(0.2)"
    said = record(tmp_path, "out", command=[sys.executable, "-c", code])
    assert said.code == 0, said.err
    metal = json.loads(profkit("summarize", "out", "--format", "json", cwd=tmp_path).out)["metal"]
    assert metal["marked"]
    assert 0.19 < metal["span"] < 0.5  # the whole process takes longer


def test_counters_of_a_recording_without_a_set_of_them_are_not_exported(tmp_path: Path) -> None:
    assert record(tmp_path, "out").code == 0
    assert not list((tmp_path / "out").glob("*gpu-counter*"))
    assert record(tmp_path, "counted", "--what", "counters", counters=True).code == 0
    assert (tmp_path / "counted" / "metal-gpu-counter-intervals.xml").is_file()


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


def test_tables_that_were_not_exported_are_told(tmp_path: Path) -> None:
    said = record_with(tmp_path, 'case $* in *--toc*) exec "$real" "$@";; esac; kill -9 $$')
    assert said.code == 0, said.err
    assert "not exported" in said.err
    assert (tmp_path / "my out" / "toc.xml").is_file()


def test_a_disk_that_is_full_is_told_in_one_sentence_and_no_half_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(left: Path, report: Path) -> None:
        report.mkdir()
        (report / "toc.xml").write_text("<trace-toc>")
        why = "[Errno 28] No space left on device: 'x'"
        raise shutil.Error([(f"{left}/{n}.xml", f"{report}/{n}.xml", why) for n in range(20)])

    exports = tmp_path / "recorded.xctrace"
    exports.mkdir()
    (exports / "toc.xml").write_text('<trace-toc><run number="1"/></trace-toc>')
    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(MachineError, match="No space left on device") as caught:
        collect_report(
            RecordRequest("samples", ("true",), tmp_path / "out", tmp_path, read_machine(), marked=False)
        )
    assert len(caught.value.message) < len(str(tmp_path)) + 100
    assert not (tmp_path / "out").exists()


def test_what_xctrace_ended_with_is_not_said_of_the_workload(tmp_path: Path) -> None:
    refusal = {"verb": "record", "text": "something that nobody knows", "status": 1}
    said = record(tmp_path, "out.trace", refuse=refusal)
    assert said.code == 3, said.err
    assert "xctrace exited with 1, and how the workload ended is not known" in said.err
    assert "something that nobody knows" in said.err


def test_a_workload_past_its_time_is_told_and_what_was_recorded_kept(tmp_path: Path) -> None:
    said = record(
        tmp_path,
        "out.trace",
        "--timeout",
        "0.5",
        command=[sys.executable, "-c", "import time; time.sleep(60)"],
    )
    assert said.code == 4
    assert "ran past its time limit" in said.err
    assert (tmp_path / "out.trace" / "form.template").is_file()


@pytest.mark.parametrize(
    ("scenario", "reason", "fix"),
    [
        ({"save_fails": "Failed: No space left on device"}, "the disk is full", "df -h"),
        ({"templates": ["Leaks"]}, "no template called Metal System Trace", "list templates"),
        (
            {"refuse": {"verb": "record", "text": "DevToolsSecurity: disabled", "status": 1}},
            "developer mode is off",
            "sudo DevToolsSecurity -enable",
        ),
    ],
)
def test_what_xctrace_refuses_is_a_fault_of_the_machine_with_its_fix(
    tmp_path: Path, scenario: dict[str, object], reason: str, fix: str
) -> None:
    said = record(tmp_path, "out.trace", **scenario)
    assert said.code == 3, said.err
    assert reason in said.err
    assert fix in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out.trace").exists()


@pytest.mark.parametrize(
    ("refused", "reason", "fix"),
    [
        ("tools", "only the command line tools are selected", "xcode-select -s"),
        ("licence", "licence of Xcode has not been accepted", "xcodebuild -license"),
        ("absent", "the selected developer folder has no xctrace", "xcode-select -s"),
        ("gone", "there is no Xcode where it is looked for", "xcode-select -s"),
    ],
)
def test_an_xcode_that_is_not_ready_is_told_with_the_line_that_mends_it(
    tmp_path: Path, refused: str, reason: str, fix: str
) -> None:
    env = {"PATH": mac_path(), "XCRUN_REFUSES": refused}
    said = profkit("record", "--tool", "xctrace", "--report", "o", "--", "true", cwd=tmp_path, env=env)
    assert said.code == 3
    assert reason in said.err
    assert fix in said.err


def test_xcrun_finds_the_xctrace_to_call(tmp_path: Path) -> None:
    env = {"PATH": mac_path()}
    said = profkit("record", "--tool", "xctrace", "--report", "o.trace", "--", "true", cwd=tmp_path, env=env)
    assert said.code == 0, said.err
    assert STAND_INS.is_dir()


def test_the_front_judges_what_it_recorded_from_any_folder_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "my analysis.sh"
    link.symlink_to(ROOT / "analyze_multibackend.sh")
    env = {**os.environ, **instruments(tmp_path).env, "PROFKIT_PYTHON": sys.executable}
    argv = [str(link), "mps", "my out", sys.executable, "-c", NOTE, *WORDS]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode in (0, 1), done.stderr  # 1: a target failed
    assert "The process keeps the GPU busy" in done.stdout
    assert (tmp_path / "words").read_text() == repr(WORDS)
