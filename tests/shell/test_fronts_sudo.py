"""The fronts under sudo: the caller's PATH is found again, and what was made belongs to the caller."""

from __future__ import annotations

import os

import pytest

from tests.shell.fronts import Project

CALLER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


def record(project: Project, report: str, front: str = "perf", **environment: str) -> int:
    """As sudo would call it: as root, with the caller's ids in the environment."""
    sudo = {"SUDO_UID": str(CALLER), "SUDO_GID": str(CALLER), "SUDO_USER": "caller"}
    return project.call(f"wrappers/{front}.sh", report, "true", **sudo, **environment).returncode


@as_root
@pytest.mark.parametrize("front", ["perf", "ncu", "nsys"])
def test_the_report_and_the_folders_made_for_it_are_the_callers(project: Project, front: str) -> None:
    record(project, "new/deep/out.data", front)

    for made in ("new", "new/deep", "new/deep/out.data"):
        status = (project.folder / made).stat()
        assert (status.st_uid, status.st_gid) == (CALLER, CALLER), made
    assert project.folder.stat().st_uid == 0


@as_root
def test_so_is_the_run_beside_the_report(project: Project) -> None:
    sudo = {"SUDO_UID": str(CALLER), "SUDO_GID": str(CALLER)}
    project.call("analyze_multibackend.sh", "cpu", "out.data", "true", STUB_CODE_profile="1", **sudo)

    for made in ("out.data", "out.data.runs", "out.data.runs/run"):
        assert (project.folder / made).stat().st_uid == CALLER, made


@as_root
def test_also_what_a_failed_or_interrupted_recording_left(project: Project) -> None:
    assert record(project, "out.data", STUB_CODE_record="130") == 130

    assert (project.folder / "out.data").stat().st_uid == CALLER


@as_root
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_was_there_before_keeps_its_owner(project: Project, kind: str) -> None:
    other = project.folder / "other"
    other.write_text("root's")
    report = project.folder / "out.data"
    if kind == "link":
        report.symlink_to(other)
    else:
        report.write_text("mine")

    assert record(project, "out.data") == 2

    assert report.lstat().st_uid == 0
    assert other.stat().st_uid == 0


@as_root
def test_root_by_itself_gives_nothing_away(project: Project) -> None:
    project.call("wrappers/perf.sh", "out.data", "true")

    assert (project.folder / "out.data").stat().st_uid == 0
