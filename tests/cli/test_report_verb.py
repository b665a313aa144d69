"""`profkit report`: every form of a run, where it goes, and what is refused before anything is read."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from profkit.core.run_folder import read_run, write_run
from tests.cli_runner import profkit
from tests.conftest import ROOT
from tests.reporting.test_renderers import judged

CALLGRIND = ROOT / "tests" / "data" / "valgrind" / "kernels.l2.callgrind"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A judged run in a folder with blanks in its name."""
    folder = tmp_path / "my run"
    write_run(folder, judged())
    return folder


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("terminal", "✗ 3 targets missed  l1-miss-rate"),
        ("markdown", "## ✗ 3 targets missed: gated\\_mlp on cpu"),
        ("html", "<!doctype html>"),
        ("json", "{"),
        ("junit", "<?xml"),
    ],
)
def test_every_form_goes_to_standard_output_and_to_a_file(run: Path, form: str, begins: str) -> None:
    said = profkit("report", run, "--format", form, cwd=run.parent)
    assert (said.code, said.err) == (0, "")
    assert said.out.lower().startswith(begins.lower())
    written = profkit("report", run, "--format", form, "--output", "out", cwd=run.parent)
    assert (written.code, written.out) == (0, "")
    assert "out is written" in written.err
    assert len((run.parent / "out").read_text()) == len(said.out)
    assert [path.name for path in run.parent.iterdir() if path.name.startswith(".")] == []


def test_what_cannot_be_read_is_one_document_too(run: Path) -> None:
    alone = profkit("report", "nothing", "--format", "json", cwd=run.parent)
    assert (alone.code, alone.json()["schema"]) == (2, "profkit.error/1")


def test_a_file_that_is_there_is_kept_without_force(run: Path) -> None:
    (run.parent / "out.md").write_text("mine")
    said = profkit("report", run, "-f", "markdown", "-o", "out.md", cwd=run.parent)
    assert said.code == 2
    assert "add --force" in said.err
    assert (run.parent / "out.md").read_text() == "mine"
    assert profkit("report", run, "-f", "markdown", "-o", "out.md", "--force", cwd=run.parent).code == 0
    assert (run.parent / "out.md").read_text().startswith("## ")


def test_a_run_keeps_the_verdicts_of_its_own_targets_unless_others_are_given(run: Path) -> None:
    mine = [v.verdict for v in read_run(run).verdicts]
    shown = profkit("report", run, "--format", "json", cwd=run.parent).json()
    assert [v["verdict"] for v in shown["verdicts"]] == mine
    (run.parent / "t.yaml").write_text("targets:\n  l1-miss-rate: '< 99 %'\n")
    other = profkit("report", run, "--format", "json", "--targets", "t.yaml", cwd=run.parent).json()
    assert {v["verdict"] for v in other["verdicts"] if v["target"] == "l1-miss-rate"} == {"pass"}


def test_a_page_is_no_reading_for_a_terminal(run: Path) -> None:
    import pty
    import subprocess
    import sys

    master, slave = pty.openpty()
    line = [sys.executable, "-m", "profkit", "report", str(run), "--format", "html"]
    done = subprocess.run(line, stdout=slave, stderr=subprocess.PIPE, text=True, cwd=run.parent)
    os.close(slave)
    os.close(master)
    assert done.returncode == 2
    assert "--output 'my run.html'" in done.stderr


def test_strict_makes_errors_of_what_is_not_known(run: Path) -> None:
    loose, strict = (
        ElementTree.fromstring(profkit("report", run, "-f", "junit", *more, cwd=run.parent).out)[0]
        for more in ((), ("--strict",))
    )
    assert int(strict.attrib["errors"]) > int(loose.attrib["errors"])
    assert int(strict.attrib["skipped"]) < int(loose.attrib["skipped"])
