"""Which commit a workload is of, asked of a real git, and what keeps it from being told."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from profkit.core.types import Revision, Workload
from profkit.profiling.workload import read_revision, unchanged_program

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
NOBODY = ("-c", "user.name=A Person", "-c", "user.email=person@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["git", "-C", str(folder), *NOBODY, *words], check=True, capture_output=True, text=True, env=plain
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of a script, and a remote that nobody may learn of."""
    folder = tmp_path / "a repository's folder"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "https://token@secret.example/alice.git")
    (folder / "bench.py").write_text("pass\n")
    git(folder, "add", "bench.py")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def of(folder: Path, *command: str) -> Revision:
    return read_revision(Workload(command or ("python", "bench.py"), "bench", str(folder)))


def test_a_clean_repository_is_told_by_commit_and_branch(repository: Path) -> None:
    assert of(repository) == Revision(git(repository, "rev-parse", "HEAD"), "main", False)


def test_a_changed_file_makes_it_dirty_and_a_new_one_does_not(repository: Path) -> None:
    (repository / "new.txt").write_text("x")
    assert of(repository).dirty is False
    (repository / "bench.py").write_text("pass  # changed\n")
    assert of(repository).dirty is True


def test_the_script_s_repository_counts_wherever_it_is_called_from(repository: Path, tmp_path: Path) -> None:
    assert of(tmp_path, "python", str(repository / "bench.py")).branch == "main"
    assert of(tmp_path, "python", "-O", os.path.join(repository.name, "bench.py"), "-n", "3").branch == "main"


def test_a_repository_without_a_commit_and_a_folder_without_a_repository(tmp_path: Path) -> None:
    assert of(tmp_path) == Revision(reason="the folder is in no git repository")
    git(tmp_path, "init", "-q", "-b", "main")
    assert of(tmp_path) == Revision(None, "main", None, "the repository has no commit yet")


def test_a_git_that_does_not_answer_is_not_waited_for(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    begin = time.monotonic()
    found = read_revision(Workload(("python", "bench.py"), "bench", str(repository)), seconds=0.2)
    assert found == Revision(reason="git did not answer in time")
    assert time.monotonic() - begin < 10


def test_what_the_repository_configures_is_not_started(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    assert of(repository).commit is not None
    assert not (tmp_path / "sprung").exists()


def test_variables_of_a_hook_do_not_name_another_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert of(repository).branch == "main"


def content(folder: Path, *command: str, packages: dict[str, str] | None = None) -> str | None:
    workload = Workload(command or ("python", "bench.py"), "bench", str(folder))
    return unchanged_program(workload, read_revision(workload), packages or {"python": "3.11.7"})


def test_a_program_is_unchanged_until_a_commit_a_file_beside_it_a_package_or_its_command_is_another(
    repository: Path,
) -> None:
    first = content(repository)
    assert first is not None
    assert content(repository) == first
    assert content(repository, "python", "bench.py", "5") != first
    assert content(repository, packages={"python": "3.12.1"}) != first
    (repository / "untracked.py").write_text("x = 1\n")
    assert content(repository) not in (None, first)
    (repository / "untracked.py").unlink()
    assert content(repository) == first
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    assert content(repository) not in (None, first)


def test_of_changes_that_are_in_no_commit_nobody_can_say_that_nothing_changed(repository: Path) -> None:
    (repository / "bench.py").write_text("pass  # changed\n")
    assert content(repository) is None
