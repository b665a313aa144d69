"""A shell behind plain pipes: what is sent, what is inherited, and every way in which it can fail."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import MachineError, ProfkitError, WorkloadError
from profkit.core.files.names import FileNames
from profkit.execution.places import connection as module
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import ReceivedFiles, Tree, workload_tree
from profkit.execution.places.kinds import ExecutionPlace
from tests.places.test_hostile_answers import sent
from tests.workload_process import assert_gone

HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, fill_store: Callable[[Path], Path]) -> Path:
    """What was sent once is there for all tests."""
    folder = tmp_path_factory.mktemp("there")
    fill_store(folder / "store")
    return folder


def place(folder: Path, *before: str, path: str = os.environ["PATH"], **environ: str) -> ExecutionPlace:
    """A shell that inherits nothing, behind other words if there are any."""
    settings = {"PATH": path, "PROFKIT_CACHE": str(folder / "store"), "PYTHONPATH": HERE, **environ}
    pairs = [f"{name}={value}" for name, value in settings.items()]
    return ExecutionPlace("prefix", "prefix:env", ("/usr/bin/env", "-i", *pairs, *before, "/bin/sh"), 20.0)


def ask(
    where: ExecutionPlace,
    tmp_path: Path,
    data: Any,
    *,
    work: Tree | None = None,
    env: dict[str, str] | None = None,
) -> tuple[Any, list[dict[str, Any]]]:
    """The result of one request, and all that was said before it."""
    connection = Connection(where, tmp_path / "log", sys.executable)
    try:
        connection.open()
        connection.start("made_up_work:work", data, work=work, name="work", env=env)
        *before, last = connection.events()
        return last.get("value"), before
    finally:
        connection.close()


def test_noise_of_a_login_shell_is_passed_over(store: Path, tmp_path: Path) -> None:
    noisy = ("/bin/sh", "-c", "seq 2000; printf 'Last login: \\377 today'; exec \"$0\"")
    assert ask(place(store, *noisy), tmp_path, {"do": "print"})[0] == "printed"
    assert "and one of its child" in (tmp_path / "log").read_text()


def test_profkit_is_the_one_that_was_sent_and_no_variable_goes_along_unnamed(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNNAMED", "1")
    value, _ = ask(place(store), tmp_path, {"do": "look"}, env={"NAMED": "2"})
    assert value["environ"]["NAMED"] == "2"
    assert "UNNAMED" not in value["environ"]
    assert value["path"][0].startswith(str(store / "store"))
    assert value["environ"]["PATH"].startswith(str(Path(sys.executable).parent))


def test_what_inherits_by_itself_gets_no_secret(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {
        "MY_API_TOKEN": "hunter2",
        "PASS": "hunter2",
        "X_AUTH": "hunter2",
        "DATABASE_URL": "postgres://u:hunter2@h/db",
        "SOMETHING": "ghp_" + "aB3dE9" * 6,
    }
    for name, text in secret.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    monkeypatch.setenv("PROFKIT_CACHE", str(store / "store"))
    monkeypatch.setenv("PYTHONPATH", HERE)
    value, _ = ask(
        ExecutionPlace("prefix", "prefix:nice", ("nice", "sh"), inherits=True), tmp_path, {"do": "look"}
    )
    assert "PATH" in value["environ"]
    assert not {*secret} & {*value["environ"]}
    assert value["environ"]["SSH_AUTH_SOCK"] == "/tmp/agent"


def test_the_work_tree_is_laid_out_anew_for_each_run(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / "bench").mkdir(parents=True)
    monkeypatch.chdir(project / "bench")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "bench" / "a.py").write_text("tracked")
    subprocess.run(["git", "add", "-A"], check=True)
    (project / "bench" / "secret").write_text("not tracked")
    work = workload_tree(("python", "a.py"), ())
    for _ in range(2):
        value, _ = ask(place(store), tmp_path, {"do": "look"}, work=work)
        assert value["files"] == ["a.py"]
        assert value["folder"].endswith("runs/work-1/work/bench")
    assert not (store / "store" / "runs" / "work-1" / "work").exists()


def test_noise_without_an_end_is_no_place(store: Path, tmp_path: Path) -> None:
    with pytest.raises(PlaceUnreachable, match="without an end"):
        Connection(place(store, "/bin/sh", "-c", "yes noise"), tmp_path / "log").open()


def test_what_cannot_be_started_or_says_nothing_is_told_with_its_last_words(tmp_path: Path) -> None:
    refused = ExecutionPlace(
        "ssh", "ssh:gpu1", ("sh", "-c", "echo Permission denied >&2; exit 255"), try_it="ssh gpu1 true"
    )
    with pytest.raises(PlaceUnreachable, match=r"ssh:gpu1 cannot be reached.*Permission denied") as caught:
        Connection(refused, tmp_path / "log").open()
    assert caught.value.fix == "ssh gpu1 true"
    with pytest.raises(PlaceUnreachable, match="cannot be started"):
        Connection(ExecutionPlace("ssh", "ssh:gpu1", ("/no/such/ssh", "sh")), tmp_path / "log").open()
    with pytest.raises(PlaceUnreachable, match="did not answer"):
        Connection(ExecutionPlace("ssh", "ssh:gpu1", ("sleep", "100"), 0.2), tmp_path / "log").open()


def test_faults_there_are_the_same_faults_here(store: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="it failed") as failed:
        ask(place(store), tmp_path, {"do": "fail"})
    assert (failed.value.exit_code, failed.value.fix) == (4, "try again   (said by prefix:env)")
    with pytest.raises(MachineError, match="nothing foresaw this"):
        ask(place(store), tmp_path, {"do": "break"})


def test_a_worker_that_dies_or_falls_silent_is_lost(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PlaceLost, match=r"was lost: .*SIGKILL"):
        ask(place(store), tmp_path, {"do": "die"})
    monkeypatch.setattr(module, "SILENCE_SECONDS", 1.5)
    monkeypatch.setattr(module, "STAGE_SECONDS", 1.5)
    with pytest.raises(PlaceLost, match="longer than"):
        ask(place(store), tmp_path, {"do": "silence"})


def test_a_ctrl_c_ends_what_runs_there(store: Path, tmp_path: Path) -> None:
    with sleeping(place(store), tmp_path) as (events, pids, _):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(ProfkitError, match="interrupted") as caught:
            list(events)
        assert caught.value.exit_code == 130
        assert_gone(*pids)


def test_where_this_side_is_killed_nothing_goes_on_there(store: Path, tmp_path: Path) -> None:
    with sleeping(place(store), tmp_path) as (_, pids, connection):
        connection._child._child.stdin.close()  # type: ignore[union-attr]  # as the end of this process does
        assert_gone(*pids)


@contextlib.contextmanager
def sleeping(where: ExecutionPlace, tmp_path: Path) -> Iterator[tuple[Iterator[Any], list[int], Connection]]:
    """A worker that sleeps and has a child that does; what it says from now on, and the pids of both."""
    connection = Connection(where, tmp_path / "log", sys.executable)
    connection.open()
    connection.start("made_up_work:work", {"do": "sleep"}, work=None, name="work")
    events = connection.events()
    note = next(event for event in events if event["event"] == "progress")
    try:
        yield events, [int(word) for word in note["words"][0].split()], connection
    finally:
        connection.close()


def test_a_full_disk_there_is_told_with_its_folder(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mount = f"mount -t tmpfs -o size=1m none {store} && exec sh"
    if subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], stdin=subprocess.DEVNULL, capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    with pytest.raises(MachineError, match="No space left") as caught:
        ask(place(tmp_path, "unshare", "-rm", "sh", "-c", f"{mount} #"), tmp_path, {"do": "print"})
    assert f"df -h {store}" in str(caught.value.fix)
    assert caught.value.exit_code == 3


def test_files_come_back_whole_and_links_stay_there(store: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    files = ReceivedFiles(into, FileNames(("empty", "folder/large")))
    _, said = ask(place(store), tmp_path, {"do": "send"})
    notes = [event for event in said if event["event"] == "progress"]
    assert ["left out: 'passwd'; only what a pass leaves comes from there"] in [
        note["words"] for note in notes
    ]
    for event in said:
        if event not in notes:
            files.take(event)
    files.close()
    assert sorted(path.name for path in into.rglob("*")) == ["empty", "folder", "large"]
    assert (into / "folder" / "large").stat().st_size == 3 << 20


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run.json").symlink_to(tmp_path / "elsewhere")
    files = ReceivedFiles(tmp_path, FileNames(("run.json",)))
    with pytest.raises(MachineError, match="cannot be kept"):
        files.take(sent(("run.json", b"x"))[0])
    assert not (tmp_path / "elsewhere").exists()
