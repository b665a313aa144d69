"""A workload that reads its standard input, or takes its program from there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import ENVIRONMENT, PROFKIT, profkit, runs

from profkit.analysis.comparability.fingerprint import arguments_of
from profkit.core.errors import MachineError, UsageError
from profkit.core.types import Step
from profkit.execution.places.files import Sending
from profkit.profiling.elsewhere import _errand_of
from profkit.profiling.profile import ProfileOptions
from profkit.profiling.run_steps import RunSettings, run_step
from profkit.profiling.workload import describe_workload, seems_marked
from profkit.runtime.passes.command import host_command, reads_program_from_input

QUICK = (
    "profile",
    "--backend",
    "cpu",
    "--sampling",
    "0.1",
    "--depth",
    "gate",
    "--precision",
    "0.5",
    "--quiet",
)
SCRIPT = "import sys\nwith open('ran.txt', 'a') as file:\n    file.write(f'{sys.argv} {sys.path[0]!r}\\n')\n"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("python -", True),
        ("python", True),
        ("python -O - a b", True),
        ("env A=1 python3 -", True),
        ("sh", True),
        ("bash -s a", True),
        ("bash -", True),
        ("bash -c true", False),
        ("bash x.sh -s", False),
        ("python x.py -", False),
        ("python -c pass", False),
        ("python -V", False),
        ("cat", False),
    ],
)
def test_a_program_that_comes_by_standard_input_is_known_by_its_command(command: str, answer: bool) -> None:
    assert reads_program_from_input(command.split()) is answer


def test_a_program_from_standard_input_without_one_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    for verb in (QUICK, (*QUICK, "--plan"), ("record", "--tool", "perf", "--report", "x.data")):
        said = profkit(*verb, "--", sys.executable, "-", cwd=tmp_path)
        assert said.code == 2
        assert "--stdin FILE" in said.err
    assert list(tmp_path.iterdir()) == []


def test_every_pass_reads_the_file_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(SCRIPT)
    said = profkit(
        *QUICK,
        "--passes",
        "timing,cprofile",
        "--stdin",
        "work.py",
        "--",
        sys.executable,
        "-",
        "a",
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    lines = (tmp_path / "ran.txt").read_text().splitlines()
    assert set(lines) == {"['-', 'a'] ''"}  # as Python has it, under cProfile too
    (run,) = runs(tmp_path / "reports")
    assert [one["state"] for one in run["passes"]] == ["finished", "finished"]
    assert len(lines) == 1 + len(run["timings"][0]["processes"][0]["seconds"])
    assert (run["name"], run["workload"]["stdin"]) == ("work", "work.py")
    assert "- a < work.py" in said.out


def test_what_profkit_is_given_reaches_every_process_of_the_workload(tmp_path: Path) -> None:
    copy = "import sys; open('read.txt', 'a').write(sys.stdin.read())"
    done = subprocess.run(
        [*PROFKIT, *QUICK, "--passes", "timing", "--stdin", "-", "--", sys.executable, "-c", copy],
        cwd=tmp_path,
        env=ENVIRONMENT,
        input="a line\n",
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    (run,) = runs(tmp_path / "reports")
    processes = len(run["timings"][0]["processes"][0]["seconds"])
    assert (tmp_path / "read.txt").read_text() == "a line\n" * processes


@pytest.mark.parametrize(
    ("name", "says"), [("absent", "No such file"), (".", "no file"), ("\0", "cannot be read")]
)
def test_what_cannot_be_read_again_for_each_pass_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=says):
        describe_workload(["cat"], stdin=name)


def test_the_file_is_a_part_of_what_runs_are_compared_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text("import profkit")
    first = describe_workload([sys.executable, "-"], stdin="work.py")
    assert arguments_of(first) != arguments_of(describe_workload([sys.executable, "-c", "pass"]))
    assert arguments_of(describe_workload(["cat", "-v"], stdin=str(tmp_path / "work.py"))) == "-v < work.py"
    assert seems_marked(first)
    assert host_command(first.command, "cprofile", tmp_path)[1] is None


def test_another_place_is_sent_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "data.txt").write_text("1 2 3")
    monkeypatch.chdir(tmp_path / "here")
    errand = _errand_of("profile", ProfileOptions(("cat",), stdin=str(tmp_path / "data.txt")), Sending())
    assert json.loads(json.dumps(errand.data))["stdin"] == "../data.txt"
    assert errand.work is not None
    assert ([*errand.work.files], errand.work.folder) == (["data.txt"], "here")
    with pytest.raises(UsageError, match="another place is sent a file"):
        _errand_of("profile", ProfileOptions(("cat",), stdin="-"), Sending())


def test_a_tool_that_lets_a_service_start_the_workload_says_that_it_has_no_standard_input(
    tmp_path: Path,
) -> None:
    with pytest.raises(MachineError, match="xctrace starts the workload without standard input"):
        run_step(
            Step("trace", ("true",), tool="xctrace", tells="--env"), RunSettings(tmp_path, stdin="/dev/null")
        )
