"""`profkit history site` as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_runner import profkit
from tests.reporting.site_histories import day, write_history


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_history(tmp_path_factory.mktemp("history") / "history.sqlite", nights=50)


def test_a_page_is_written_and_said(history: Path, tmp_path: Path) -> None:
    said = profkit(
        "history", "site", "--to", "pages", "--history", history,
        cwd=tmp_path,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert said.out.endswith("MB: open pages/index.html\n")
    assert "look for changes" in said.err


def test_days_are_chosen_and_json_says_what_was_written(history: Path, tmp_path: Path) -> None:
    told = profkit(
        "history",
        "site",
        "--to",
        "pages",
        "--history",
        history,
        "--since",
        day(42),
        "--format",
        "json",
        cwd=tmp_path,
    ).json()
    assert told["schema"] == "profkit.history-change/1"
    assert (told["verb"], told["file"]) == ("site", "pages/index.html")
    assert told["bytes"] == (tmp_path / "pages" / "index.html").stat().st_size
    assert f"{day(42)} to {day(49)}" in (tmp_path / "pages" / "index.html").read_text()


def test_a_folder_with_other_files_is_refused_with_the_fix(history: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    said = profkit("history", "site", "--to", ".", "--history", history, cwd=tmp_path)
    assert said.code == 2
    assert "contains other files, but no site: thesis.tex" in said.err
    assert "--to a new folder, or an empty one" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
