"""The `record` verb: what it says can be typed as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import profkit


def record(report: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "profkit", "record", "--tool", "perf", "--report", report, "--", "true"]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=100)


@pytest.mark.perf
def test_the_line_that_makes_the_missing_folder_and_the_line_for_afterwards_are_quoted(
    tmp_path: Path,
) -> None:
    missing = record("my runs/it's.data", tmp_path)
    assert missing.returncode == 2
    fix = missing.stderr.partition("fix: ")[2].strip()
    subprocess.run(["sh", "-c", fix], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["my runs"]

    done = record("my runs/it's.data", tmp_path)
    assert done.returncode == 0, done.stderr
    following = done.stderr.partition("next: profkit ")[2].strip()
    read = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m profkit {following}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "does not exist" not in read.stderr


@pytest.mark.perf
def test_json_is_one_document_that_names_the_file_that_was_left(tmp_path: Path) -> None:
    said = profkit(
        "record", "--tool", "perf", "--report", "out.data", "--format", "json", "--", "true", cwd=tmp_path
    )
    assert said.code == 0, said.err
    assert said.json() == {"schema": "profkit.record/1", "tool": "perf", "report": "out.data"}
    assert (tmp_path / "out.data").stat().st_size > 0


def test_a_fault_is_a_document_where_json_was_asked_for(tmp_path: Path) -> None:
    said = profkit(
        "record", "--tool", "ncu", "--report", "out", "--format", "json", "--", "true", cwd=tmp_path
    )
    assert said.code == 3
    assert said.json()["schema"] == "profkit.error/1"
