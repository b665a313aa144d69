"""`compare --base` and `--a --b` with real processes: does each version run its own code, and which is slower?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.core.errors import Silent, UsageError, WorkloadError
from profkit.profiling import time_limits
from profkit.regression.paired import PairedOptions, RunOptions, VersionsRequest, compare_versions
from tests.cli_runner import ENVIRONMENT, PROFKIT, profkit
from tests.git_repository import commit, git, repository

# Pairs end when all is decided: more time than they need is for a machine that others use.
QUICK = PairedOptions(budget=120.0, seed=1, counts="never", run=RunOptions(sampling=0.1))
BUSY = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


def request(folder: Path, *command: str, **more: object) -> VersionsRequest:
    """The command at `HEAD~1` and as it is, without the passes that say why."""
    usual: dict[str, object] = {"base": "HEAD~1", "cwd": folder, "pairs": QUICK, "causes": False}
    return VersionsRequest(command or (sys.executable, "work.py"), **{**usual, **more})  # type: ignore[arg-type]


@pytest.mark.thorough
def test_a_commit_that_does_more_is_a_regression_and_the_tree_is_left_as_it_was(tmp_path: Path) -> None:
    place = repository(tmp_path / "re po", size=100)
    commit(place, 150)
    found = compare_versions(request(place), Silent()).comparison
    assert found.outcome == "regressed"
    assert found.changes[0].ratio == pytest.approx(1.5, abs=0.1)
    assert found.candidate.commit == git(place, "rev-parse", "HEAD")
    assert git(place, "worktree", "list").count("\n") == 0
    assert git(place, "status", "--porcelain") == ""


def test_a_version_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    (place / "work.py").write_text("raise SystemExit('no data')")
    git(place, "commit", "-qam", "broken")
    with pytest.raises(WorkloadError, match=r"(?s)the working tree.*exited with 1.*no data"):
        compare_versions(request(place), Silent())


def test_a_candidate_that_never_ends_is_ended_after_ten_times_its_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = repository(tmp_path / "repo")
    (place / "work.py").write_text("import time\ntime.sleep(3600)\n")
    git(place, "commit", "-qam", "it waits for what never comes")
    monkeypatch.setattr(time_limits, "REPEATED", (10.0, 1.0))
    with pytest.raises(WorkloadError, match=r"the working tree \(\w+\) ran past its time limit") as found:
        compare_versions(request(place), Silent())
    assert found.value.fix == "--timeout SECONDS"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--a", "true"], "--a and --b must be given together"),
        (["--a", "true", "--b", "true", "--base", "main"], "whole commands"),
        (["--base", "main"], "no command"),
        (["--head", "main", "--", "true"], "needs a version to compare with"),
        (["one"], "two runs or reports, but got 1"),
        (["python", "bench.py", "--", "x"], "two runs or reports, but got 3"),
        (["--a", "'", "--b", "true"], "is not a command"),
        (["--a", " ", "--b", "true"], "an empty command"),
        (["--a", "absent-program", "--b", "true"], "absent-program"),
        (["--base", "main", "--floor", "x", "--", "true"], "--floor"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(tmp_path: Path, words: list[str], says: str) -> None:
    done = profkit("compare", *words, cwd=tmp_path)
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err


@pytest.mark.thorough
def test_ctrl_c_while_the_reason_is_looked_for_keeps_what_was_decided(tmp_path: Path) -> None:
    quick, slow = (f'{sys.executable} -c "{BUSY.format(s)}"' for s in (0.02, 0.2))
    command = [*PROFKIT, "compare", "--budget", "300", "--a", quick, "--b", slow]
    errors = tmp_path / "errors"
    with (
        errors.open("w") as stream,
        subprocess.Popen(
            command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=stream, text=True
        ) as child,
    ):
        end = time.monotonic() + 300
        while "why:" not in errors.read_text() and time.monotonic() < end:
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        printed, _ = child.communicate(timeout=60)
    assert child.returncode == 130, errors.read_text()
    assert "WORSE" in printed
    assert "Interrupted during the" in " ".join(printed.split())


def between(place: Path, *command: str) -> VersionsRequest:
    """The command at two commits, neither of which is the working tree."""
    return VersionsRequest(command, "HEAD~1", "HEAD", cwd=place, pairs=QUICK, causes=False)


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Path, str]:
    """A project whose code lies in `lib/`, installed in place into an environment as `pip install -e` does it."""
    place = repository(tmp_path / "repo")
    (place / "lib" / "tool").mkdir(parents=True)
    for milliseconds in (50, 100):
        (place / "lib" / "tool" / "__init__.py").write_text(
            f"import time\nend = time.process_time() + {milliseconds}e-3\nwhile time.process_time() < end: pass\n"
        )
        (place / "bench.py").write_text("import tool\n")
        commit(place, milliseconds)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "__editable__.tool.pth").write_text(f"{place / 'lib'}\n")
    return place, str(environment / "bin" / "python")


@pytest.mark.thorough
def test_two_commits_that_both_load_the_working_tree_are_refused_with_the_folder_that_mends_it(
    installed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, python = installed
    with pytest.raises(
        UsageError, match=r"runs the code of the working tree .*lib/tool/__init__\.py"
    ) as found:
        compare_versions(between(place, python, "bench.py"), Silent())
    assert "--setup" in (found.value.fix or "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path, "lib"]))
    mended = compare_versions(between(place, python, "bench.py"), Silent()).comparison
    assert mended.outcome == "regressed"


def test_one_program_for_both_versions_is_refused(tmp_path: Path) -> None:
    """What was built in the working tree is in no commit: both would run it."""
    place = repository(tmp_path / "repo")
    commit(place, 2)
    shutil.copy("/bin/true", place / "bench")
    with pytest.raises(UsageError, match="both versions would run the same program") as found:
        compare_versions(between(place, "./bench"), Silent())
    assert found.value.fix == "--setup make"


@pytest.mark.parametrize("line", ["{} absent.py 'blau haus'", "{} absent.py 'blau haus' | cat; exit 3"])
def test_a_command_that_is_compared_is_called_by_what_is_harmless_of_it(line: str, tmp_path: Path) -> None:
    said = profkit(
        "compare", "--a", line.format(sys.executable), "--b", "true", "--format", "json", cwd=tmp_path
    )
    assert said.code == 4
    assert "absent.py [masked]" in said.err
    assert "blau" not in said.out + said.err
