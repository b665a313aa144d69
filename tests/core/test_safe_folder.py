"""A folder that somebody else may swap for a link: nothing is written through it, nothing behind it handed over.

The tests that hand over, and those with a second user, need root; the others show the same with one user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from profkit.core import process, run_folder
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files import safe_folder
from profkit.core.files.safe_folder import (
    TemporaryFolder,
    arriving,
    bring,
    check_links,
    chown_to_sudo_user,
    ensure_folder,
    held,
    make_parents,
    remember,
    replace_into,
    write_whole,
)
from profkit.execution import journal
from profkit.kernels.sweep.request import FORMAT
from profkit.profiling.record import _bring, _where_to_write, check_target
from tests import documents

NOW = datetime(2026, 11, 20, 5, 47)
CALLER, STRANGER = 65533, 65534
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give files away and be a second user"
)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    safe_folder._made.clear()


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """What the link leads to: another one's folder, with a run of their own."""
    folder = tmp_path / "victim"
    (folder / "artifacts").mkdir(parents=True)
    (folder / "logs").mkdir()
    (folder / "run.json").write_text("theirs")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_folder.create_run_folder(tmp_path / "base", "w", "cpu", NOW)


def _swap(folder: Path, victim: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(victim)


def _listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_uid, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_nothing_is_written_into_what_took_a_runs_place(run: Path, victim: Path, kind: str) -> None:
    document = documents.empty()
    run_folder.write_run(run, document)
    if kind == "link":
        _swap(run, victim)
    else:
        run.rename(run.with_name("moved"))
        victim.rename(run)
        victim = run
    before = _listing(victim)
    with pytest.raises(MachineError, match="has taken its place"):
        run_folder.write_run(run, document)
    with pytest.raises(OSError, match="has taken its place"):
        write_whole(run / "artifacts" / "report.txt", ("x",))
    with pytest.raises(MachineError, match="has taken its place"):
        journal.open_journal(run, FORMAT, {})
    with pytest.raises(OSError, match="has taken its place"):
        ensure_folder(run)
    with pytest.raises(OSError, match="has taken its place"), held(run):
        pass
    assert _listing(victim) == before


def test_a_link_in_place_of_a_folder_inside_of_a_run_is_not_followed(run: Path, victim: Path) -> None:
    (run / "artifacts").rmdir()
    (run / "artifacts").symlink_to(victim)
    with pytest.raises(OSError, match="has taken its place"):
        write_whole(run / "artifacts" / "run.json", ("x",))
    assert (victim / "run.json").read_text() == "theirs"


def test_a_link_with_the_name_of_a_temporary_file_is_not_followed(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    (tmp_path / f".out.{os.getpid()}-known.tmp").symlink_to(victim / "run.json")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "out", ("x",))
    assert (victim / "run.json").read_text() == "theirs"


def test_no_report_is_recorded_through_a_link_to_nothing(tmp_path: Path) -> None:
    from profkit.profiling.record import find_recorder

    (tmp_path / "report").symlink_to(tmp_path / "elsewhere")
    for force in (False, True):
        with pytest.raises(UsageError, match="is a broken link"):
            check_target(tmp_path / "report", force, find_recorder("valgrind"))


def test_a_journal_that_is_a_link_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    journal.open_journal(tmp_path / "theirs", FORMAT, {}).close()
    theirs = tmp_path / "theirs" / FORMAT.file
    (tmp_path / "ours" / FORMAT.file).symlink_to(theirs)
    before = theirs.read_bytes()
    with pytest.raises((MachineError, UnreadableReport)):
        journal.open_journal(tmp_path / "ours", FORMAT, {})
    assert theirs.read_bytes() == before


def test_a_folder_that_was_there_is_known_again(tmp_path: Path, victim: Path) -> None:
    night = tmp_path / "nights" / "n1"
    make_parents(night)
    remember(night)
    make_parents(night / "runs" / "w")
    _swap(night, victim)
    with pytest.raises(OSError, match="has taken its place"):
        make_parents(night / "runs" / "v")
    with pytest.raises(OSError, match="has taken its place"):
        write_whole(night / "state.json", ("x",))
    assert (victim / "run.json").read_text() == "theirs"


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("links", [True, False])
def test_what_is_brought_replaces_nothing_and_leaves_nothing(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch, kind: str, links: bool
) -> None:
    if not links:
        monkeypatch.setattr("os.link", _refuse)
    for name in ("free", "taken", "dangling"):
        target = tmp_path / "there" / name
        target.parent.mkdir(exist_ok=True)
        with arriving(target.parent) as private:
            place = private / name
            if kind == "file":
                place.write_text("mine")
            else:
                place.mkdir()
                (place / "inner").write_text("mine")
            if name == "free":
                bring(place, target)
                continue
            target.symlink_to(victim / ("run.json" if name == "taken" else "new"))
            with pytest.raises(FileExistsError):
                bring(place, target)
    assert sorted(os.listdir(tmp_path / "there")) == ["dangling", "free", "taken"]
    free = tmp_path / "there" / "free"
    assert (free if kind == "file" else free / "inner").read_text() == "mine"
    assert sorted(os.listdir(victim)) == ["artifacts", "logs", "run.json"]


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(1, "no links here")


def test_the_log_of_a_process_goes_through_no_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "log").symlink_to(victim / "run.json")
    outcome = process.run(["echo", "said"], log=tmp_path / "log")
    assert outcome.output_tail == "said\n"
    assert (victim / "run.json").read_text() == "theirs"


def test_a_new_history_is_made_through_no_link(tmp_path: Path, victim: Path) -> None:
    from profkit.regression.history import open_history

    (tmp_path / "h.sqlite").symlink_to(victim / "new")
    with pytest.raises(UnreadableReport):
        open_history(tmp_path / "h.sqlite")
    assert not (victim / "new").exists()


@needs_root
class TestAsRoot:
    @pytest.fixture(autouse=True)
    def sudo(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SUDO_UID", str(CALLER))
        monkeypatch.setenv("SUDO_GID", str(CALLER))

    def test_a_run_is_handed_over_and_no_link_other_name_or_strangers_file_with_it(
        self, tmp_path: Path, run: Path, victim: Path
    ) -> None:
        (run / "artifacts" / "mine").write_text("x")
        (run / "artifacts" / "link").symlink_to(victim / "run.json")
        (run / "folder").symlink_to(victim)
        os.link(victim / "run.json", run / "artifacts" / "second name")
        (run / "strangers").write_text("x")
        os.chown(run / "strangers", STRANGER, STRANGER)
        os.mkfifo(run / "pipe")
        before = _listing(victim)
        chown_to_sudo_user(run)
        for path in (run, run / "artifacts", run / "logs", run / "artifacts" / "mine"):
            assert (path.stat().st_uid, path.stat().st_gid) == (CALLER, CALLER)
        assert (run / "strangers").stat().st_uid == STRANGER
        assert _listing(victim) == before

    @pytest.mark.parametrize("kind", ["link", "folder"])
    def test_what_took_its_place_is_not_handed_over(self, run: Path, victim: Path, kind: str) -> None:
        if kind == "link":
            _swap(run, victim)
        else:
            run.rename(run.with_name("moved"))
            victim.rename(run)
        chown_to_sudo_user(run)
        assert {path.stat().st_uid for path in (run, *run.rglob("*"))} == {0}

    def test_root_follows_no_link_of_a_stranger_to_a_report(self, tmp_path: Path, victim: Path) -> None:
        from profkit.profiling.record import find_recorder

        link = tmp_path / "report"
        link.symlink_to(victim / "run.json")
        os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
        with pytest.raises(UsageError, match="a link of another user"):
            check_target(link, True, find_recorder("valgrind"))

    @pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="links are looked at on Linux")
    @pytest.mark.parametrize("owner", [0, CALLER, STRANGER])
    def test_root_follows_links_of_its_own_and_of_its_caller_only(
        self, tmp_path: Path, victim: Path, owner: int
    ) -> None:
        from profkit.regression.history import open_history

        link = tmp_path / "link"
        link.symlink_to("victim")  # relative to where it lies
        os.chown(link, owner, owner, follow_symlinks=False)
        before = _listing(victim)
        if owner != STRANGER:
            write_whole(link / "artifacts" / "out", ("x",))
            make_parents(link / "new" / "inner")
            assert run_folder.create_run_folder(link / "runs", "w", "cpu", NOW).is_dir()
            open_history(link / "h.sqlite").close()
            assert (victim / "artifacts" / "out").read_text() == "x"
            assert (victim / "new" / "inner").is_dir()
            return
        said = "a link of another user, and root follows none"
        with pytest.raises(OSError, match=said):
            write_whole(link / "artifacts" / "out", ("x",))
        with pytest.raises(OSError, match=said):
            make_parents(link / "new" / "inner")
        with pytest.raises(OSError, match=said):
            check_links(link)
        with pytest.raises(MachineError, match=said):
            run_folder.create_run_folder(link / "runs", "w", "cpu", NOW)
        with pytest.raises(MachineError, match=said):
            open_history(link / "h.sqlite")
        assert _listing(victim) == before

    def test_a_second_user_who_swaps_the_folder_again_and_again_gets_nothing(
        self, tmp_path: Path, victim: Path
    ) -> None:
        """The folder that runs are written to is the stranger's own, so that they may rename what is in it."""
        for path in (*tmp_path.parents, tmp_path):
            if path.stat().st_uid == 0 and path != Path("/"):
                path.chmod(path.stat().st_mode | 0o011)
        base = tmp_path / "base"
        base.mkdir()
        os.chown(base, STRANGER, STRANGER)
        before = _listing(victim)
        folder = run_folder.create_run_folder(base, "w", "cpu", NOW)
        child = os.fork()
        if child == 0:
            try:
                os.setgid(STRANGER)
                os.setuid(STRANGER)
                moved = folder.with_name("moved")
                os.symlink(victim, base / "trap")
                while True:
                    os.rename(folder, moved)
                    os.rename(base / "trap", folder)
                    os.rename(folder, base / "trap")
                    os.rename(moved, folder)
            finally:
                os._exit(1)
        refused = written = 0
        end = time.monotonic() + 60  # a busy machine may let only one of them run for long
        while time.monotonic() < end and (refused == 0 or written + refused < 300):
            try:
                write_whole(folder / "run.json", ("root's",))
                written += 1
            except OSError:
                refused += 1
            chown_to_sudo_user(folder / "logs")
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL  # until then it could swap them
        assert refused
        assert _listing(victim) == before

    @pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="a path of a handle is Linux's")
    def test_a_run_where_a_stranger_may_take_its_name_goes_on_by_a_handle(
        self, tmp_path: Path, victim: Path
    ) -> None:
        base = tmp_path / "base"
        base.mkdir()
        os.chown(base, STRANGER, STRANGER)
        folder = run_folder.create_run_folder(base, "w", "cpu", NOW)
        document = documents.empty()
        with held(folder) as path:
            assert path != folder
            _swap(folder, victim)
            before = _listing(victim)
            run_folder.write_run(path, document)
            subprocess.run(["sh", "-c", 'echo x >"$0/artifacts/left"', path], check=True)
            chown_to_sudo_user(path)
            assert _listing(victim) == before
        moved = folder.with_name("moved")
        assert (moved / "artifacts" / "left").stat().st_uid == CALLER
        assert (moved / "run.json").stat().st_uid == CALLER
        assert not safe_folder._held

    @pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="a path of a handle is Linux's")
    def test_a_run_that_its_workload_removes_is_made_again_behind_the_same_handle(
        self, tmp_path: Path
    ) -> None:
        base = tmp_path / "base"
        base.mkdir()
        os.chown(base, STRANGER, STRANGER)
        folder = run_folder.create_run_folder(base, "w", "cpu", NOW)
        with held(folder) as path:
            shutil.rmtree(base)
            run_folder.write_run(path, documents.empty())
        assert (folder / "run.json").is_file()

    @pytest.mark.parametrize(
        ("owner", "mode", "is_held"),
        [
            (0, 0o755, False),
            (CALLER, 0o755, False),
            (0, 0o1777, False),
            (0, 0o777, True),
            (STRANGER, 0o755, True),
        ],
    )
    @pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="a path of a handle is Linux's")
    def test_a_run_keeps_its_own_path_where_nobody_else_can_take_that(
        self, tmp_path: Path, owner: int, mode: int, is_held: bool
    ) -> None:
        above = tmp_path / "above"
        above.mkdir()
        folder = run_folder.create_run_folder(above / "runs", "w", "cpu", NOW)
        above.chmod(mode)
        os.chown(above, owner, owner)
        with held(folder) as path:
            assert (path != folder) is is_held

    @pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="a path of a handle is Linux's")
    @pytest.mark.parametrize(("what", "how"), [("base", "blink"), ("base", "stay"), ("run", "blink")])
    def test_whoever_takes_a_name_at_any_step_of_a_run_gets_nothing(
        self, tmp_path: Path, what: str, how: str
    ) -> None:
        program = Path(__file__).with_name("swap_at_each_step.py")
        said = subprocess.run(
            [sys.executable, program, tmp_path, what, how],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        result = json.loads(said)
        assert result["planted"] == []
        assert result["steps"] > 30
        assert result["finished"] > 0

    def test_where_a_stranger_may_put_links_a_tool_writes_elsewhere_first(
        self, tmp_path: Path, victim: Path
    ) -> None:
        shared, private = tmp_path / "shared", tmp_path / "private"
        shared.mkdir()
        private.mkdir()
        report = shared / "out.report"
        assert _where_to_write(report, private) == report
        os.chown(shared, CALLER, CALLER)
        assert _where_to_write(report, private) == report  # the caller of sudo is root already
        os.chown(shared, STRANGER, STRANGER)
        written = _where_to_write(report, private)
        assert written.parent.parent == private
        written.write_text("recorded")
        report.symlink_to(victim / "run.json")  # meanwhile
        _bring(written, report)
        assert (victim / "run.json").read_text() == "theirs"
        assert (report.is_symlink(), report.read_text(), report.stat().st_uid) == (False, "recorded", CALLER)


def swap_what_arrives(folder: Path) -> int:
    """Another process, of the folder's owner: it puts a link in place of each `.arriving-*`, without an end."""
    if pid := os.fork():
        return pid
    try:
        os.chdir(folder)
        os.setgid(CALLER)
        os.setuid(CALLER)
        last = "none"
        while True:
            for name in os.listdir("."):
                if name.startswith(".arriving-") and name != last:
                    with contextlib.suppress(OSError):
                        os.rename(name, f"aside-{name}")
                        os.symlink("../victim", name)
                        # Few to look through
                        for old, away in ((last, os.unlink), (f"aside-{last}", os.rmdir)):
                            with contextlib.suppress(OSError):
                                away(old)
                        last = name
    finally:
        os._exit(0)


@pytest.mark.thorough
@needs_root
def test_who_swaps_the_folder_of_what_arrives_gets_nothing_of_another(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    (beside := tmp_path / "reports").mkdir()
    os.chown(beside, CALLER, CALLER)
    before = sorted(path.name for path in victim.rglob("*"))
    pid = swap_what_arrives(beside)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), arriving(beside) as arrived:
                (arrived / "artifacts").mkdir()
                (arrived / "artifacts" / "trace").touch()
                replace_into(arrived / "artifacts", beside / "run")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert any(path.name.startswith("aside-") for path in beside.iterdir())  # the attack took place
    assert sorted(path.name for path in victim.rglob("*")) == before
    assert {path.stat().st_uid for path in (victim, *victim.rglob("*"))} == {0}
    assert (beside / "run" / "trace").stat().st_uid == CALLER


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError, MachineError])
def test_of_what_arrives_nothing_is_left_however_it_ends(tmp_path: Path, fault: type[BaseException]) -> None:
    def fail(arrived: Path) -> None:
        (arrived / "artifacts").mkdir()
        (arrived / "artifacts" / "trace").touch()
        (arrived / "link").symlink_to(tmp_path)
        raise fault("x")

    with pytest.raises(fault), arriving(tmp_path) as folder:
        fail(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_something_still_writes_into_is_removed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that was ended by Ctrl-C wrote one more file while its folder was removed, and the folder stayed."""
    removed: list[str] = []
    rmdir = os.rmdir

    def late(path: str, **more: int | None) -> None:
        if not removed:
            Path(folder.name, "late").write_text("")
        removed.append(path)
        rmdir(path, **more)

    folder = TemporaryFolder("late")
    monkeypatch.setattr(os, "rmdir", late)
    with folder as name:
        Path(name, "first").write_text("")
    assert not Path(name).exists()
    assert len(removed) == 2


def test_a_temporary_folder_is_removed_also_where_ctrl_c_comes_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = TemporaryFolder("interrupted")
    remove, interrupts = tempfile.TemporaryDirectory.cleanup, iter([True])

    def interrupted(self: tempfile.TemporaryDirectory[str]) -> None:
        if next(interrupts, False):
            raise KeyboardInterrupt
        remove(self)

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.cleanup()
    assert not Path(folder.name).exists()
