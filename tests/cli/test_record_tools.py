"""`profkit record` with perf, valgrind and nsys: where the report lies, and what is told where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runner import Said, profkit
from tests.conftest import ROOT


def record_with_perf(report: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "profkit", "record", "--tool", "perf", "--report", report, "--", "true"]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=100)


@pytest.mark.thorough
@pytest.mark.perf
def test_the_line_that_makes_the_missing_folder_and_the_line_for_afterwards_are_quoted(
    tmp_path: Path,
) -> None:
    missing = record_with_perf("my runs/it's.data", tmp_path)
    assert missing.returncode == 2
    fix = missing.stderr.partition("fix: ")[2].strip()
    subprocess.run(["sh", "-c", fix], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["my runs"]

    done = record_with_perf("my runs/it's.data", tmp_path)
    assert done.returncode == 0, done.stderr
    following = done.stderr.partition("next: profkit ")[2].partition("\n")[0]
    read = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m profkit {following}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "does not exist" not in read.stderr


@pytest.mark.thorough
@pytest.mark.perf
def test_the_line_for_perfs_own_view_starts_no_addr2line(tmp_path: Path) -> None:
    done = record_with_perf("my out.data", tmp_path)
    line = next(line for line in done.stderr.splitlines() if line.startswith("next: perf"))
    assert line == "next: perf report --no-inline -i 'my out.data'"
    shown = subprocess.run(
        ["sh", "-c", f"{line.removeprefix('next: ')} --stdio"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shown.returncode == 0, shown.stderr


@pytest.mark.perf
def test_json_is_one_document_that_names_the_file_that_was_left(tmp_path: Path) -> None:
    said = profkit(
        "record", "--tool", "perf", "--report", "out.data", "--format", "json", "--", "true", cwd=tmp_path
    )
    assert said.code == 0, said.err
    assert said.json() == {"schema": "profkit.record/1", "tool": "perf", "report": "out.data"}
    assert (tmp_path / "out.data").stat().st_size > 0


BUSY = "s = 0\nfor i in range(400_000): s += i * i\n"
MENTIONS = f"import profkit\n{BUSY}"
STEPS = """
import profkit
def walk():
    for _ in range(3):
        with profkit.region("step"):
            sum(i * i for i in range(60_000))
"""


@pytest.mark.thorough
@pytest.mark.perf
@pytest.mark.parametrize(
    ("script", "says"),
    [
        (MENTIONS, "it marks no region: recording again"),
        ("from steps import walk\nwalk()", "it marks a region"),
    ],
)
def test_a_wrong_guess_about_regions_costs_a_second_run_and_never_an_empty_report(
    tmp_path: Path, script: str, says: str
) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "work.py").write_text(script)
    said = profkit("record", "--tool", "perf", "--report", "r", "--", sys.executable, "work.py", cwd=tmp_path)
    assert said.code == 0
    assert says in said.err
    assert sorted(p.name for p in tmp_path.glob("r*")) == ["r"]  # perf's r.old is not left
    told = profkit("summarize", "r", cwd=tmp_path)
    assert told.code == 0
    assert "samples" in told.out


STAND_INS = ROOT / "tests" / "stand_ins"
NOTE = "import sys; open('words', 'w').write(repr(sys.argv[1:]))"
WORDS = ["a b", 'say "x"', "it's", "$HOME", "<script>"]


def scenario(folder: Path, tool: str, **told: object) -> dict[str, str]:
    """The environment in which `tool` is the stand-in that behaves as told."""
    file = folder / f"{tool}.json"
    file.write_text(json.dumps({"log": str(folder / "calls"), **told}))
    return {f"PROFKIT_{tool.upper()}": str(STAND_INS / tool), f"{tool.upper()}_SCENARIO": str(file)}


def record(folder: Path, tool: str, report: str, env: dict[str, str], *options: str) -> Said:
    command = [sys.executable, "-c", NOTE, *WORDS]
    return profkit(
        "record", "--tool", tool, "--report", report, *options, "--", *command, cwd=folder, env=env
    )


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


@pytest.mark.parametrize("name", ["out.nsys-rep", "my out.nsys-rep", "no-suffix", "100%.nsys-rep"])
def test_nsys_leaves_its_report_where_it_was_asked_for(tmp_path: Path, name: str) -> None:
    said = record(tmp_path, "nsys", name, scenario(tmp_path, "nsys"))
    assert said.code == 0, said.err
    assert (tmp_path / name).read_bytes() == b"a stand-in's report"
    assert (tmp_path / "words").read_text() == repr(WORDS)


def test_a_report_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out.nsys-rep").write_text("mine")
    said = record(tmp_path, "nsys", "out.nsys-rep", scenario(tmp_path, "nsys"))
    assert said.code == 2
    assert (tmp_path / "out.nsys-rep").read_text() == "mine"
    assert record(tmp_path, "nsys", "out.nsys-rep", scenario(tmp_path, "nsys"), "--force").code == 0
    assert (tmp_path / "out.nsys-rep").read_text() != "mine"


@pytest.mark.parametrize("tool", ["nsys", "perf", "valgrind"])
def test_a_tool_that_cannot_pick_one_kernel_says_so_and_runs_nothing(tmp_path: Path, tool: str) -> None:
    said = record(tmp_path, tool, "out", {}, "--kernel", "silu_mul")
    assert said.code == 2
    assert f"{tool} cannot pick one kernel" in said.err
    assert "--tool ncu" in said.err
    assert not (tmp_path / "words").exists()


def test_a_tool_that_is_not_there_is_told_with_the_line_that_brings_it(tmp_path: Path) -> None:
    for tool in ("ncu", "nsys"):
        said = record(tmp_path, tool, "out", {f"PROFKIT_{tool.upper()}": str(tmp_path / "absent")})
        assert said.code == 3, (tool, said.err)
        assert "fix: " in said.err, tool
        assert "Traceback" not in said.err
        assert not (tmp_path / "words").exists()


def test_a_workload_that_fails_under_nsys_is_told_with_its_code(tmp_path: Path) -> None:
    env = scenario(tmp_path, "nsys")
    said = profkit(
        "record", "--tool", "nsys", "--report", "out", "--", "sh", "-c", "exit 7", cwd=tmp_path, env=env
    )
    assert said.code == 4
    assert "7" in said.err


def test_nsys_that_leaves_no_report_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    env = scenario(tmp_path, "nsys", report=False, text="Generated:\n    No reports were generated")
    said = record(tmp_path, "nsys", "out.nsys-rep", env)
    assert said.code == 3
    assert "Traceback" not in said.err
    assert not (tmp_path / "out.nsys-rep").exists()
