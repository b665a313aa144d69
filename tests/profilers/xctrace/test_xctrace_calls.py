"""How xctrace is found, asked and called, and what its texts and exit codes mean."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from profkit.profilers.xctrace import export
from profkit.profilers.xctrace.command import (
    absolute_command,
    explain_fault,
    record_argv,
    time_limit,
)
from profkit.profilers.xctrace.export import export_document
from profkit.profilers.xctrace.report import read_exports
from profkit.profilers.xctrace.toc import TraceRun, exit_status
from profkit.profiling.scrub import scrub
from tests.conftest import ROOT
from tests.xctrace_stand_in import STAND_INS, XCTRACE, Instruments, instruments


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    export._ask_xcrun.cache_clear()
    export._ask_version.cache_clear()
    monkeypatch.delenv("PROFKIT_XCTRACE", raising=False)


def test_the_program_comes_last_and_whole() -> None:
    argv = record_argv(
        ("/p y", "-x", "--", "--output"), "o.trace", template="T", instruments=("A", "B"), limit=1.5
    )
    assert argv[-6:] == ("--launch", "--", "/p y", "-x", "--", "--output")
    assert argv[:10] == (
        "xctrace", "record", "--template", "T", "--instrument", "A", "--instrument", "B", "--time-limit", "1500ms",
    )  # fmt: skip
    assert argv[10:15] == ("--no-prompt", "--output", "o.trace", "--target-stdout", "-")


def test_a_time_limit_is_never_0() -> None:
    assert [time_limit(seconds) for seconds in (60.0, 0.0001, 2.5)] == ["60s", "1ms", "2500ms"]


def test_xctrace_is_the_one_that_xcrun_names_and_never_the_stub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "usr" / "bin"
    stub.mkdir(parents=True)
    (stub / "xctrace").write_text("#!/bin/sh\necho tool not found\nexit 1\n")
    (stub / "xctrace").chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub}{os.pathsep}{STAND_INS}{os.pathsep}{os.environ['PATH']}")
    assert export.locate_xctrace() == XCTRACE


@pytest.mark.parametrize(
    ("text", "code", "reason", "fix"),
    [
        ("Export failed: Document Missing Template Error", 10, "not finished", "shorter time"),
        ("xcrun: error: unable to find utility \"xctrace\", not a developer tool", 72, "no xctrace", "xcode-select"),
        ("", 69, "licence", "xcodebuild -license"),
        ("Selected counter profile is not supported on target device", 0, "no set of GPU counters", "template"),
        ("Instrument with name 'Metal GPU Counters' cannot be found", 56, "Metal GPU Counters", "list instruments"),
        ("Cannot find template matching name: 'Nope'", 55, "template called Nope", "list templates"),
        ("Unrecognized option: --no-prompt", 64, "option --no-prompt", "newer Xcode"),
        ("Output file already exists at path: /x/a.trace", 57, "already", "another name"),
        ("Failed to attach to target process.", 2, "protects programs", "Python of your own"),
        ("No space left on device", 1, "disk is full", "df -h"),
        ("", 133, "crashed", "shorter"),
        ("", -9, "killed", "shorter"),
        ("", 54, "time limit", "--timeout"),
    ],
)  # fmt: skip
def test_an_error_of_xctrace_is_told_in_words_with_its_fix(
    text: str, code: int, reason: str, fix: str
) -> None:
    fault = explain_fault(text, code)
    assert fault is not None
    assert reason in fault.reason
    assert fix in str(fault.fix)


ENDS = """0|exit(0)|0 4|exit(4)|4 9|SIGKILL|137 11|SIGSEGV|139 3||3 || -1|| 99999|| |exit()| |exit(5)|5"""


def test_how_the_program_ended_stands_in_the_table_of_contents() -> None:
    for code, reason, status in (end.split("|") for end in ENDS.split(" ")):
        process = {"return-exit-status": code, "termination-reason": reason}
        assert exit_status(TraceRun(1, process=process)) == (int(status) if status else None), process


def test_a_program_is_named_by_its_whole_path_and_links_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").write_text("#!/bin/sh\n")
    (tmp_path / "real").chmod(0o755)
    (tmp_path / "python").symlink_to(tmp_path / "real")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert absolute_command(("python", "-c", "x"), "/w") == (str(tmp_path / "python"), "-c", "x")
    assert absolute_command(("./bin/../python", "a"), tmp_path) == (str(tmp_path / "python"), "a")
    assert absolute_command(("/usr/bin/env",), "/w") == ("/usr/bin/env",)
    assert absolute_command(("absent",), "/w") == ("absent",)


GPU, STATES = "metal-gpu-intervals", "metal-gpu-state-intervals"
M1 = ROOT / "tests" / "data" / "xctrace" / "m1"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A document of a program that slept."""
    path = tmp_path_factory.mktemp("recorded") / "my run.trace"
    argv = [
        str(XCTRACE),
        "record",
        "--template",
        "Metal System Trace",
        "--output",
        str(path),
        "--launch",
        "--",
    ]
    subprocess.run([*argv, "/bin/sleep", "0.2"], check=True, capture_output=True)
    return path


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, **scenario: object) -> Instruments:
    found = instruments(folder, **scenario)
    for name, value in found.env.items():
        monkeypatch.setenv(name, value)
    return found


def test_the_tables_that_are_there_are_exported_and_told_one_by_one(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tmp_path, monkeypatch)
    lines: list[str] = []
    export_document(document, tmp_path / "out", (GPU, "no-such-table", STATES), tell=lines.append)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"toc.xml", f"{GPU}.xml", f"{STATES}.xml"}
    assert [line.split()[0] for line in lines] == [f"{GPU}:", f"{STATES}:"]


@pytest.mark.parametrize(
    ("scenario", "reason"), [({"large": GPU}, "larger than"), ({"crash": GPU}, "xctrace crashed")]
)
def test_a_table_that_is_too_much_is_left_out_with_its_reason(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: dict[str, object], reason: str
) -> None:
    told(tmp_path, monkeypatch, **scenario)
    monkeypatch.setattr("profkit.profilers.xctrace.export.MAX_BYTES", 1_000_000)
    lines: list[str] = []
    export_document(document, tmp_path / "out", (GPU, STATES), tell=lines.append)
    assert (tmp_path / "out" / f"{STATES}.xml").exists()
    assert not (tmp_path / "out" / f"{GPU}.xml").exists()
    assert lines[0].startswith(f"{GPU}: left out, ")
    assert reason in lines[0]


# ---------------------------------------------------------------- scrubbed


def test_a_scrubbed_folder_reads_the_same_without_names(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    toc = (M1 / "toc.xml").read_text()
    toc = toc.replace('name="MacBook Air"', 'name="Ann\'s secret Mac"').replace(
        "--iters", "--key=/Users/ann/k"
    )
    toc = toc.replace("00000000-0000-0000-0000-000000000000", "A23CDF4E-484E-5C1F-A585-AA2FD5883BA6")
    (folder / "toc.xml").write_text(toc)
    for name in (GPU, STATES, "time-profile"):
        text = (
            (M1 / f"{name}.xml")
            .read_text()
            .replace("metal_probe", "secret_probe")
            .replace("Terminal", "Firefox")
        )
        (folder / f"{name}.xml").write_text(text.replace('path="/usr/lib/', 'path="/Users/ann/lib/'))
    (folder / "toc.xml").write_text((folder / "toc.xml").read_text().replace("metal_probe", "secret_probe"))
    done = scrub(folder, tmp_path / "out")
    everything = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    for private in ("Ann", "/ann", "A23CDF4E", "--key", "Firefox"):
        assert private not in everything, private
    before, after = read_exports(folder), read_exports(tmp_path / "out")
    assert before.metal is not None
    assert after.metal is not None
    assert after.metal.process_busy == before.metal.process_busy
    assert after.metal.device_busy == before.metal.device_busy
    assert after.metal.encoders == before.metal.encoders
    assert [h.function for h in after.profiles[0].hotspots] == [
        h.function for h in before.profiles[0].hotspots
    ]
    kinds = {removed.kind for removed in done.removed}
    assert {"command line", "host name", "identities of devices", "paths"} <= kinds
