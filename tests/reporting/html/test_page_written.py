"""The page beside a run: there when the run ends, whole or not at all, and never the reason why a run fails."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from profkit.reporting.html import page
from profkit.reporting.report_files import write_page
from profkit.reporting.views.run_about import read_extras
from tests import documents
from tests.conftest import ROOT


@pytest.mark.thorough
def test_a_profiled_run_has_its_page(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("print(sum(range(1000)))")
    profkit = [
        sys.executable,
        "-m",
        "profkit",
        "profile",
        "--backend",
        "cpu",
        "--depth",
        "gate",
        "--output",
        "runs",
    ]
    done = subprocess.run(
        [*profkit, "--passes", "timing", "--sampling", "0.2", "--", sys.executable, "work.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("runs/*/report.html")
    told = made.read_text(encoding="utf-8")
    assert "<title>work on cpu</title>" in told
    assert "report.html  report.md  run.json" in done.stdout


def test_a_page_links_what_lies_beside_it_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a b.json").write_text("12")
    found = read_extras(tmp_path)
    assert [found.has(name) for name in ("a b.json", "gone.json", "\x00", ".", "x" * 5000)] == [
        True,
        *[False] * 4,
    ]
    assert not read_extras(None).has("a b.json")


def test_a_page_that_cannot_be_written_is_a_reason_and_no_fault(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert (
        write_page(gone, documents.document())
        == f"cannot write {gone}/report.html: No such file or directory"
    )


def test_a_full_disk_leaves_no_half_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    why = write_page(tmp_path, documents.document())
    assert why is not None
    assert "No space left" in why
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_the_page_is_told_and_leaves_the_former_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").write_text("the former one")

    def broken(*_: object) -> str:
        raise KeyError("template")

    monkeypatch.setattr(page, "render", broken)
    why = write_page(tmp_path, documents.document())
    assert why == "no report.html: profkit could not make it (KeyError: 'template')"
    assert (tmp_path / "report.html").read_text() == "the former one"


@pytest.mark.thorough
def test_the_wheel_holds_what_a_page_is_made_of(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "profkit", "setup"):
        (copy / name).symlink_to(ROOT / name)
    done = subprocess.run([*pip, "-w", str(tmp_path), str(copy)], capture_output=True, text=True)
    if "setuptools" in done.stderr and done.returncode:
        pytest.skip("setuptools is not here to build a wheel")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("profkit/reporting/html/")}
    folder = ROOT / "profkit" / "reporting" / "html"
    needed = {
        path.relative_to(ROOT).as_posix()
        for kind in ("templates", "assets")
        for path in (folder / kind).iterdir()
    }
    assert needed <= names
