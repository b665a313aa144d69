"""Calls of git in a repository whose own configuration starts programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.types import Workload
from profkit.execution.places.files import _tracked_files
from profkit.profiling.workload import read_revision
from profkit.regression.paired.checkout import (
    CheckoutSpec,
    blamed_commit,
    checked_out,
    diff_text,
    is_dirty,
    subject_of,
)
from tests.git_repository import git


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path, str]:
    """A repository, the file that every program of its configuration makes, and its first commit."""
    folder, trace = tmp_path / "repository", tmp_path / "started"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / ".gitattributes").write_text("*.txt filter=a=b diff=c\n*.dat filter=plain\n")
    (folder / "b.dat").write_text("data\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    first = git(folder, "rev-parse", "HEAD")
    (folder / "a.txt").write_text("two\n")
    git(folder, "commit", "--quiet", "--all", "--message", "second")
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{trace}"\ncat\n')
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        (hooks / hook).write_text(program.read_text())
        (hooks / hook).chmod(0o755)
    filters = ("filter.a=b.smudge", "filter.a=b.clean", "filter.plain.smudge", "filter.plain.clean")
    diffs = ("diff.c.textconv", "diff.c.command", "diff.external")
    cores = ("core.fsmonitor", "core.pager", "core.alternateRefsCommand", "core.sshCommand")
    for name in (*filters, *diffs, *cores, "credential.helper", "gpg.program"):
        git(folder, "config", name, str(program))
    for name in ("filter.a=b.required", "filter.plain.required", "log.showSignature"):
        git(folder, "config", name, "true")
    git(folder, "config", "core.hooksPath", str(hooks))
    (folder / "a.txt").write_text("three\n")
    trace.unlink(missing_ok=True)
    return folder, trace, first


def test_nothing_that_a_strangers_repository_configures_is_started(hostile: tuple[Path, Path, str]) -> None:
    folder, trace, first = hostile
    revision = read_revision(Workload(("python", "a.py"), "a", str(folder)))
    assert revision.dirty is True
    assert _tracked_files(folder)
    assert is_dirty(folder)
    assert "+three" in diff_text(folder, first, None)
    assert subject_of(folder, first) == "first"
    assert blamed_commit(folder, "a.txt", 1, "HEAD") == first
    with checked_out(folder, first, CheckoutSpec(), folder.parent / "log") as checkout:
        assert (checkout.folder / "a.txt").read_text() == "one\ntwo\n"
    assert not trace.exists(), trace.read_text()


def test_the_same_calls_without_care_start_the_programs(hostile: tuple[Path, Path, str]) -> None:
    folder, trace, _ = hostile
    git(folder, "status", "--porcelain")
    assert trace.exists()
