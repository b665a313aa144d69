"""`--on` from end to end: a real sshd on the loopback, and recorded stand-ins for docker and kubectl."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli_runner import ENVIRONMENT, MARKED, PROFKIT, Said, profkit
from tests.git_repository import git
from tests.sshd import HOST, Server
from tests.sshd import sshd as sshd

ON = ("--on", f"ssh:{HOST}", "--on-python", sys.executable)
QUICK = ("--backend", "cpu", "--passes", "timing", "--sampling", "0.1", "--precision", "0.5")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git work tree with a workload that is tracked, and data that are not."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "bench.py").write_text(MARKED)
    for words in (("init", "-q"), ("add", "bench.py"), ("commit", "-qm", "a")):
        git(folder, *words)
    (folder / "data.txt").write_text("not tracked")
    return folder


def on_ssh(server: Server, *words: str, cwd: Path) -> Said:
    return profkit(*words, cwd=cwd, env={"PROFKIT_SSH": str(server.program)})


def test_a_run_by_ssh_comes_back_as_a_run_of_this_side(sshd: Server, project: Path) -> None:
    said = on_ssh(sshd, "profile", *ON, *QUICK, "--format", "json", "--", "python", "bench.py", cwd=project)
    assert said.code == 0, said.err
    document = said.json()
    assert (document["state"], document["place"], document["name"]) == ("complete", f"ssh:{HOST}", "bench")
    assert document["machine"]["cpu"]
    assert document["workload"]["folder"].startswith(str(sshd.home))
    assert len(document["revision"]["commit"]) == 40  # git was not sent
    (run,) = (project / "reports").iterdir()
    assert {"run.json", "report.md", "report.html", "artifacts", "logs"} <= {
        path.name for path in run.iterdir()
    }
    assert any((run / "artifacts").iterdir())
    again = on_ssh(sshd, "profile", *ON, *QUICK, "--", "python", "bench.py", cwd=project)
    assert "send" not in again.err
    assert f"Place    ssh:{HOST}" in again.out


def test_a_workload_that_fails_there_fails_here_and_leaves_its_run(sshd: Server, project: Path) -> None:
    (project / "bench.py").write_text("import sys; sys.exit('a word of its own')")
    said = on_ssh(sshd, "profile", *ON, *QUICK, "--", "python", "bench.py", cwd=project)
    assert said.code == 4
    assert "(run: reports/" in said.err
    (run,) = (project / "reports").iterdir()
    assert json.loads((run / "run.json").read_text())["state"] == "failed"
    assert "a word of its own" in (run / "logs" / "timing-1.log").read_text()


def test_a_file_that_git_does_not_track_goes_only_by_name(sshd: Server, project: Path) -> None:
    (project / "mine.py").write_text("print(open('data.txt').read())\n" + MARKED)
    command = ("--", "python", "mine.py")
    said = on_ssh(sshd, "profile", *ON, *QUICK, *command, cwd=project)
    assert said.code == 2
    assert "mine.py is not tracked by git" in said.err
    send = ("--send", "mine.py", "--send", "data.txt")
    said = on_ssh(sshd, "profile", *ON, *send, *QUICK, *command, cwd=project)
    assert said.code == 0, said.err


def test_where_one_place_is_not_reached_or_lost_the_next_is_taken(sshd: Server, project: Path) -> None:
    gone = "prefix:sh -c 'echo no route to host >&2; exit 255'"
    line = (*QUICK, "--", "python", "bench.py")
    said = on_ssh(sshd, "profile", "--on", gone, *ON, *line, cwd=project)
    assert said.code == 0, said.err
    assert "no route to host'; the next place is tried" in said.err
    said = on_ssh(sshd, "profile", "--on", gone, *line, cwd=project)
    assert said.code == 3
    assert "prefix:sh cannot be reached" in said.err


def start(server: Server, project: Path, *words: str) -> subprocess.Popen[str]:
    """A profile of a workload that takes long, once it runs there."""
    (project / "bench.py").write_text(
        "import time, pathlib\npathlib.Path('/tmp').exists()\ntime.sleep(600)\n"
    )
    running = subprocess.Popen(
        [*PROFKIT, "profile", *words, *QUICK, "--", "python", "bench.py"],
        cwd=project,
        env={**ENVIRONMENT, "PROFKIT_SSH": str(server.program)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not workloads(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workloads(server)
    return running


def workloads(server: Server) -> list[int]:
    """What runs in the folders of runs there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                here, words = os.readlink(entry / "cwd"), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if here.startswith(str(server.home)) and b"bench.py" in words:
                found.append(int(entry.name))
    return found


def assert_nothing_runs(server: Server) -> None:
    deadline = time.monotonic() + 30
    while workloads(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workloads(server) == []


@pytest.mark.thorough
def test_a_ctrl_c_ends_it_there_and_what_was_finished_comes_back(sshd: Server, project: Path) -> None:
    running = start(sshd, project, *ON)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    (run,) = (project / "reports").iterdir()
    assert json.loads((run / "run.json").read_text())["state"] == "interrupted"
    assert_nothing_runs(sshd)


@pytest.mark.thorough
def test_a_profkit_that_is_killed_leaves_nothing_there(sshd: Server, project: Path) -> None:
    running = start(sshd, project, *ON)
    running.kill()
    running.communicate(timeout=60)
    assert_nothing_runs(sshd)
    for left in Path(tempfile.gettempdir()).glob("profkit-place-*"):  # killed, it could not
        shutil.rmtree(left)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("where", "name", "words"),
    [
        ("docker:--gpus all image:1", "docker", "run -i --rm --init -v profkit-cache:/profkit-cache"),
        ("kubectl:-n ml pod-0", "kubectl", "exec -i -n ml pod-0 -- sh"),
        ("srun:--gres=gpu:1", "srun", "--job-name=profkit --ntasks=1 --unbuffered --gres=gpu:1 sh"),
    ],
)
def test_containers_pods_and_tasks_are_entered_by_their_own_programs(
    project: Path, tmp_path: Path, fill_store: Callable[[Path], Path], where: str, name: str, words: str
) -> None:
    """By a stand-in that writes down how it was called, and is the machine itself."""
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/called\nexport PROFKIT_CACHE={fill_store(tmp_path / "there")}\nexec sh\n'
    )
    program.chmod(0o755)
    said = profkit(
        *("profile", "--on", where, *QUICK, "--", "python", "bench.py"),
        cwd=project,
        env={"PATH": f"{program.parent}:{ENVIRONMENT['PATH']}"},
    )
    assert said.code == 0, said.err
    assert (tmp_path / "called").read_text().startswith(words)
