from __future__ import annotations

import errno
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from profkit.profiling.doctor import GIB, folder_check, storage_checks

Usage = namedtuple("Usage", "total used free")


def test_a_folder_that_is_not_there_yet_is_tried_where_it_would_be_made(tmp_path: Path) -> None:
    [check] = folder_check("output folder", tmp_path / "a" / "b", "fix")
    assert (check.state, check.path, check.fix) == ("ok", str(tmp_path), None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert next(folder_check("output folder", tmp_path, "fix")).state == "refused"


def test_a_folder_that_cannot_be_written_is_refused_with_the_reason() -> None:
    [check] = folder_check("output folder", Path("/proc/reports"), "choose another")
    assert (check.state, check.fix) == ("refused", "choose another")
    assert "is not writable" in check.detail


@pytest.mark.parametrize(("free", "state"), [(2 * GIB, "ok"), (GIB // 2, "limited"), (1 << 20, "refused")])
def test_a_disk_that_is_nearly_full_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(GIB, GIB, free))
    assert next(folder_check("output folder", tmp_path, "fix")).state == state


def test_a_full_disk_is_a_refusal_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    found = list(storage_checks(tmp_path / "runs"))
    assert [check.state for check in found] == ["refused", "refused"]
    assert "No space left" in found[0].detail
