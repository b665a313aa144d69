"""The last good commit beside the present one: had for real from git, and the reasons where it cannot be had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.regression.paired.checkout import (
    CheckoutSpec,
    NoCheckout,
    checked_out,
    commit_of,
    known_name,
    named_commit,
    no_repository,
    repository_of,
    version_of,
)
from tests.git_repository import commit, git, repository

USUAL = CheckoutSpec()


def test_a_commit_is_there_inside_the_block_and_gone_behind_it(tmp_path: Path) -> None:
    place = repository(tmp_path / "re po")
    old = commit_of(place)
    assert old is not None
    commit(place, 200)
    with checked_out(place, old, USUAL, tmp_path / "log") as there:
        assert (there.folder / "size.txt").read_text() == "100"
        assert there.folder.name == "re po"  # the same name: a path's length can change what is measured
        assert (place / "size.txt").read_text() == "200"
    assert not there.folder.exists()
    assert git(place, "worktree", "list").count("\n") == 0
    assert git(place, "status", "--porcelain") == ""


def test_a_command_and_its_folder_move_with_the_checkout(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    (place / "sub").mkdir()
    (place / "sub" / "a.py").write_text("")
    head = commit(place, 1)
    (place / ".venv").mkdir()
    (place / ".venv" / "python").write_text("")  # in no commit: of the machine, and the same for both
    with checked_out(place / "sub", head, USUAL, tmp_path / "log") as there:
        assert there.path_inside(place / "sub") == there.folder / "sub"
        words = there.command_inside(
            ("python", f"{place}/sub/a.py", "a.py", f"{place}/.venv/python", "/etc/x"), place / "sub"
        )
        assert words == ("python", f"{there.folder}/sub/a.py", "a.py", f"{place}/.venv/python", "/etc/x")
        assert there.command_inside(("../.venv/python",), place / "sub") == (f"{place}/sub/../.venv/python",)
        with pytest.raises(NoCheckout, match="outside of the repository"):
            there.path_inside(tmp_path)
        (place / "new").mkdir()
        with pytest.raises(NoCheckout, match="the folder new is not in"):
            there.path_inside(place / "new")


def test_no_hook_of_the_repository_runs_for_it(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    hook = place / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with checked_out(place, git(place, "rev-parse", "HEAD"), USUAL, tmp_path / "log"):
        pass
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (replace(USUAL, setup=("sh", "-c", "echo no compiler >&2; exit 3")), "exited with 3: no compiler"),
        (replace(USUAL, setup=("absent-tool",)), "No such file"),
        (replace(USUAL, setup=("sleep", "30"), setup_timeout=0.2), "ran past its time limit"),
    ],
)
def test_a_step_that_fails_is_the_reason_and_leaves_nothing(
    tmp_path: Path, spec: CheckoutSpec, says: str
) -> None:
    place = repository(tmp_path / "repo")
    with (
        pytest.raises(NoCheckout) as caught,
        checked_out(place, git(place, "rev-parse", "HEAD"), spec, tmp_path / "log"),
    ):
        pytest.fail("there is nothing to run")
    assert says in caught.value.message
    assert git(place, "worktree", "list").count("\n") == 0


def test_a_branch_that_only_origin_has_is_taken_from_there_and_named_so(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    first, main = commit_of(place), git(place, "branch", "--show-current").strip()
    git(place, "checkout", "-q", "-b", "feature")
    commit(place, 200)
    git(tmp_path, "clone", "-q", "--branch", "feature", str(place), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    assert git(clone, "branch", "--format=%(refname:short)").split() == ["feature"]
    assert named_commit(clone, main) == first
    with version_of(main, ("cat", "size.txt"), clone, USUAL, tmp_path / "log") as version:
        assert version.name == f"origin/{main} ({(first or '')[:12]})"
    with pytest.raises(NoCheckout, match="there is no commit 'other'"):
        named_commit(clone, "other")


def test_a_branch_of_another_remote_is_taken_where_one_alone_has_it(tmp_path: Path) -> None:
    """As in a fork, whose own branches are elsewhere: remotes are called upstream as often as origin."""
    place = repository(tmp_path / "repo")
    first, main = commit_of(place), git(place, "branch", "--show-current").strip()
    git(place, "checkout", "-q", "-b", "feature")
    git(tmp_path, "clone", "-q", "--origin", "upstream", "--branch", "feature", str(place), "clone")
    clone = tmp_path / "clone"
    assert named_commit(clone, main) == first
    assert known_name(clone, main) == f"upstream/{main}"
    git(clone, "remote", "add", "fork", str(place))
    git(clone, "fetch", "-q", "fork")
    with pytest.raises(
        NoCheckout, match=f"no branch '{main}' in .*, but fork/{main} and upstream/{main}"
    ) as caught:
        named_commit(clone, main)
    assert caught.value.fix == f"--base fork/{main}"
    git(clone, "remote", "rename", "upstream", "origin")
    assert known_name(clone, main) == f"origin/{main}"


def test_a_repository_of_another_user_is_told_with_the_line_that_trusts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = repository(tmp_path / "re po")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    fault = no_repository(place)
    assert fault.message == f"git does not trust {place}: it belongs to another user"
    assert fault.fix == f"git config --global --add safe.directory '{place}'"


def test_a_shallow_clone_is_told_with_the_line_that_mends_it(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    old = git(place, "rev-parse", "HEAD")
    commit(place, 2)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{place}", "shallow")
    with pytest.raises(NoCheckout) as caught:
        named_commit(tmp_path / "shallow", old)
    assert "shallow" in caught.value.message
    assert "fetch-depth: 0" in (caught.value.fix or "")


def test_without_git_there_is_no_checkout_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = repository(tmp_path / "repo")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repository_of(place) is None
    assert commit_of(place) is None
    with pytest.raises(NoCheckout, match="is in no git repository"):
        checked_out(place, "a" * 40, USUAL, tmp_path / "log").__enter__()


# ---------------------------------------------------------------- builds that are kept


SETUP = CheckoutSpec(setup=("sh", "-c", "cat size.txt >> built.txt"))


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "repo")
    (folder / ".gitignore").write_text("built.txt\n")
    commit(folder, 1)
    return folder


def built(place: Path, name: str, tmp_path: Path) -> str:
    """What the setups of the build for a commit left there."""
    with checked_out(place, git(place, "rev-parse", name), SETUP, tmp_path / "log") as there:
        assert git(there.folder, "rev-parse", "HEAD") == git(place, "rev-parse", name)
        return (there.folder / "built.txt").read_text()


def test_another_commit_goes_on_with_what_git_ignores(place: Path, tmp_path: Path) -> None:
    built(place, "HEAD", tmp_path)
    commit(place, 2)
    assert built(place, "HEAD", tmp_path) == "12"  # an object file would be there, and not be made anew


def test_two_at_once_have_two_builds_and_the_repository_knows_of_none(place: Path, tmp_path: Path) -> None:
    head = git(place, "rev-parse", "HEAD")
    commit(place, 2)
    with (
        checked_out(place, head, SETUP, tmp_path / "log") as first,
        checked_out(place, git(place, "rev-parse", "HEAD"), SETUP, tmp_path / "log") as second,
    ):
        assert first.folder != second.folder
        assert (first.folder / "size.txt").read_text() == "1"
        assert (second.folder / "size.txt").read_text() == "2"
    assert git(place, "worktree", "list").count("\n") == 0


def test_what_a_run_left_there_is_taken_away(place: Path, tmp_path: Path) -> None:
    with checked_out(place, git(place, "rev-parse", "HEAD"), SETUP, tmp_path / "log") as there:
        (there.folder / "left.txt").write_text("")
        (there.folder / "size.txt").write_text("9")
        folder = there.folder
    commit(place, 2)
    assert built(place, "HEAD", tmp_path) == "12"
    assert not (folder / "left.txt").exists()
