"""Checkouts that were set up are kept: by repository, setup command and lock files."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.regression.paired.checkout import CheckoutSpec, checked_out
from tests.git_repository import commit, git, repository

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


def test_other_lock_files_begin_from_nothing(place: Path, tmp_path: Path) -> None:
    built(place, "HEAD", tmp_path)
    (place / "requirements.txt").write_text("numpy==2.0\n")
    commit(place, 2)
    assert built(place, "HEAD", tmp_path) == "2"


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


def test_what_a_run_left_there_is_taken_away_and_a_broken_build_is_made_anew(
    place: Path, tmp_path: Path
) -> None:
    with checked_out(place, git(place, "rev-parse", "HEAD"), SETUP, tmp_path / "log") as there:
        (there.folder / "left.txt").write_text("")
        (there.folder / "size.txt").write_text("9")
        folder = there.folder
    commit(place, 2)
    assert built(place, "HEAD", tmp_path) == "12"
    assert not (folder / "left.txt").exists()
    (folder.parent / "ready").write_text("")
    assert built(place, "HEAD", tmp_path) == "122"


def test_a_setup_that_fails_leaves_no_build_that_counts_as_ready(place: Path, tmp_path: Path) -> None:
    from profkit.regression.paired.checkout import NoCheckout

    broken = CheckoutSpec(setup=("sh", "-c", f"test -e {tmp_path}/compiler && echo ok > built.txt"))
    head = git(place, "rev-parse", "HEAD")
    with pytest.raises(NoCheckout), checked_out(place, head, broken, tmp_path / "log"):
        pytest.fail("there is nothing to run")
    (tmp_path / "compiler").touch()
    with checked_out(place, head, broken, tmp_path / "log") as there:
        assert (there.folder / "built.txt").read_text() == "ok\n"
