"""A disk that fills up or breaks, memory that ends, at any call: a sentence and a known exit code, or the result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.core.run_folder import read_run, write_run
from profkit.regression.history.store import open_history
from tests.cli_runner import profkit
from tests.documents import document
from tests.fuzz.failing_calls import KINDS, failing

MOST = 60  # calls of one kind; a command passes untouched long before
KNOWN = {0, 2, 3, 4, 5}
NIGHT = "version: 1\noutput: nights\nworkloads:\n  - {name: a, command: [python, a.py]}\n"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, a history with it, and the configuration of a nightly."""
    folder = tmp_path_factory.mktemp("ready")
    write_run(folder / "run", document())
    assert profkit("history", "add", "run", "--history", "h.sqlite", cwd=folder).code == 0
    (folder / "nightly.yaml").write_text(NIGHT)
    (folder / "a.py").write_text("print(1)\n")
    return folder


def _is_whole(folder: Path) -> None:
    read_run(folder / "run")
    with open_history(folder / "h.sqlite", read_only=True) as history:
        assert len(history.entries()) == 1


COMMANDS: dict[str, tuple[str, ...]] = {
    "scrub": ("scrub", "run", "--output", "copy"),
    "history": ("history", "add", "run", "--history", "new.sqlite"),
    "history list": ("history", "list", "--history", "h.sqlite"),
    "report": ("report", "run", "--format", "html", "--output", "page.html"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_call_that_fails_is_told_and_leaves_what_was_there(
    name: str, kind: str, ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROFKIT_DEBUG", raising=False)
    try_each(COMMANDS[name], kind, ready, tmp_path, _is_whole)


def try_each(
    words: tuple[str, ...], kind: str, ready: Path, tmp_path: Path, check: Callable[[Path], None]
) -> int:
    """Let the first, second, ... call fail until the command passes untouched; returns how many there were."""
    for n in range(1, MOST):
        folder = tmp_path / f"{n}"
        shutil.copytree(ready, folder)
        with failing(kind, n, folder) as counter:
            said = profkit(*words, cwd=folder)
        assert said.code in KNOWN, f"call {n}: exit {said.code}: {said.err}"
        assert said.code == 0 or said.err.strip(), f"call {n}: it says nothing"
        check(folder)
        shutil.rmtree(folder)
        if not counter.has_failed:
            assert said.code == 0, said.err
            return n
    raise AssertionError(f"after {MOST} calls it has not passed untouched")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 6])
def test_a_profile_on_a_disk_that_fails_says_so_and_what_is_written_stays_whole(
    n: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROFKIT_DEBUG", raising=False)
    with failing(kind, n, tmp_path) as counter:
        said = profkit("profile", "--backend", "cpu", "--passes", "timing", "--", "true", cwd=tmp_path)
    assert counter.has_failed
    assert said.code in KNOWN, said.err
    assert said.code == 0 or "error:" in said.err
    for run in tmp_path.glob("reports/*/run.json"):
        read_run(run.parent)
