"""`profkit history` as a user calls it: runs in, a trend out, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from profkit.core.run_folder import create_run_folder, write_run
from profkit.regression.history import open_history
from tests.cli_runner import profkit
from tests.conftest import ROOT
from tests.regression.history.entries import entry, value
from tests.regression.history.test_entry import document
from tests.spoken import sentences

REPORT = ROOT / "tests" / "data" / "cuda" / "nsys" / "hostbound.sqlite"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    from datetime import datetime, timezone

    folder = create_run_folder(
        tmp_path / "reports", "mlp", "cuda", datetime(2026, 11, 20, tzinfo=timezone.utc)
    )
    write_run(folder, document())
    return folder


@pytest.fixture
def year(tmp_path: Path) -> Path:
    """60 nights with a step of 10 % at the fortieth, another machine from the twentieth on."""
    path = tmp_path / "year.sqlite"
    with open_history(path) as history:
        for night in range(60):
            level = (1.0 if night < 40 else 1.1) * (1 + 0.002 * ((night * 7919) % 11 - 5) / 5)
            machine = "old machine" if night < 20 else "new machine"
            history.add(entry(night, value(number=1e-3 * level), value("time.p95", 2e-3), machine=machine))
    return path


def test_runs_and_reports_are_added_once(run: Path, tmp_path: Path) -> None:
    said = profkit("history", "add", run, run / "run.json", REPORT, cwd=tmp_path)
    assert said.code == 0, said.err
    assert [line.split()[0] for line in said.out.splitlines()] == ["added", "known", "added"]
    assert (tmp_path / "reports" / "history.sqlite").is_file()
    again = profkit("history", "add", run, REPORT, "--format", "json", cwd=tmp_path).json()
    assert again["schema"] == "profkit.added/1"
    assert [one["added"] for one in again["runs"]] == [False] * 2
    listed = profkit("history", "list", "--format", "json", cwd=tmp_path).json()
    assert {one["source"] for one in listed["runs"]} == {"profkit", "nsys"}


def test_one_that_cannot_be_read_does_not_cost_the_others(run: Path, tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text('{"a": 1}')
    said = profkit(
        "history", "add", "none", tmp_path / "reports", "text.json", run, "--format", "json", cwd=tmp_path
    )
    assert said.code == 2
    told = said.json()
    assert [one["added"] for one in told["runs"]] == [True]
    assert [one["path"].rpartition("/")[2] for one in told["errors"]] == ["none", "reports", "text.json"]
    assert said.err.count("error: ") == 3
    assert "/reports/*/" in told["errors"][1]["fix"]


def test_a_report_may_be_given_a_workload_and_a_commit(tmp_path: Path) -> None:
    profkit("history", "add", REPORT, "-w", "my tools", "--commit", "abc123", cwd=tmp_path)
    shown = profkit("history", "show", "--format", "json", cwd=tmp_path).json()
    assert (shown["schema"], shown["workload"], shown["commit"]) == ("profkit.entry/2", "my tools", "abc123")
    assert {one["key"]["workload"] for one in shown["values"]} == {"my tools"}
    assert sentences(shown) == []


def test_a_trend_is_told_with_its_segment_and_its_change(year: Path, tmp_path: Path) -> None:
    said = profkit("history", "trend", "mlp", "--history", year, cwd=tmp_path, env={"COLUMNS": "80"})
    assert said.code == 0, said.err
    assert "┊ 2026-01-21: a new segment begins: another machine" in said.out
    assert "▲ 2026-02-10: 1.00 ms to 1.10 ms, +10" in said.out
    assert "worse" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_a_trend_as_json_has_the_indices(year: Path, tmp_path: Path) -> None:
    told = profkit(
        "history", "trend", "mlp:time.*", "--history", year, "--format", "json", cwd=tmp_path
    ).json()
    assert told["schema"] == "profkit.trends/2"
    found = {trend["metric"]: trend for trend in told["trends"]}
    assert found["time.median"]["change_points"] == [40]
    assert found["time.median"]["changes"][0]["ratio"] == pytest.approx(1.1, rel=0.01)
    assert [(epoch["first"], epoch["cause"]) for epoch in found["time.median"]["epochs"]] == [
        (0, "begin"),
        (20, "machine"),
    ]
    assert found["time.p95"]["change_points"] == []


def test_a_pattern_names_workloads_and_metrics_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with open_history(path) as history:
        for number, name in enumerate(("a:b", "c")):
            history.add(entry(number, value(workload=name), value("ipc", 2.0, workload=name), workload=name))

    def found(pattern: str) -> set[tuple[str, str]]:
        words = ("history", "trend", pattern, "--history", path, "--format", "json")
        return {(one["workload"], one["metric"]) for one in profkit(*words, cwd=tmp_path).json()["trends"]}

    assert found("a:b") == {("a:b", "time.median")}
    assert found("c:ipc") == {("c", "ipc")}
    assert len(found("*:*")) == 4


def test_an_accepted_change_is_no_change_any_more(year: Path, tmp_path: Path) -> None:
    because = ("--because", "new <driver>", "--since", "2026-02-10", "--by", "anna")
    said = profkit("history", "accept", "mlp", *because, "--history", year, cwd=tmp_path)
    assert said.out == "accepted  mlp since 2026-02-10T00:00:00+00:00\n"
    again = profkit(
        "history", "accept", "mlp", *because, "--history", year, "--format", "json", cwd=tmp_path
    ).json()
    assert again["new"] is False
    told = profkit("history", "trend", "mlp", "--history", year, "--format", "json", cwd=tmp_path).json()
    assert told["trends"][0]["change_points"] == []
    segment = told["trends"][0]["epochs"][-1]
    assert (segment["cause"], segment["word"], segment["by"]) == ("accepted", "new <driver>", "anna")
    assert "accepted by anna: mlp" in profkit("history", "list", "--history", year, cwd=tmp_path).out


def test_a_series_of_a_file(tmp_path: Path) -> None:
    values = [100.0 + (n * 37) % 5 * 0.1 for n in range(40)] + [120.0 + (n * 37) % 5 * 0.1 for n in range(40)]
    (tmp_path / "s.csv").write_text("\n".join(map(str, values)))
    told = profkit("history", "trend", "--from", "s.csv", "--format", "json", cwd=tmp_path).json()
    assert (told["schema"], told["change_points"], told["values"]) == ("profkit.trend/1", [40], values)
    assert "▲" in profkit("history", "trend", "--from", "s.csv", cwd=tmp_path).out
    assert not (tmp_path / "reports").exists()


def test_pruning_says_what_goes_and_asks_for_what_is_meant(year: Path, tmp_path: Path) -> None:
    before = year.read_bytes()
    nothing = profkit("history", "prune", "--history", year, cwd=tmp_path)
    assert (nothing.code, "say which runs to remove" in nothing.err) == (2, True)
    dry = profkit("history", "prune", "--keep", "50", "--dry-run", "--history", year, cwd=tmp_path)
    assert dry.out.count("would go  ") == 10
    assert f"10 runs would go, 50 stay in {year}" in dry.out
    assert year.read_bytes() == before
    told = profkit(
        "history", "prune", "--keep", "50", "--history", year, "--format", "json", cwd=tmp_path
    ).json()
    assert (told["taken"], told["left"]) == (10, 50)
    gone = profkit(
        "history", "prune", "--older-than", "2026-01-21", "--workload", "mlp", "--history", year, cwd=tmp_path
    )
    assert "10 runs gone, 40 stay" in gone.out


def test_an_export_is_tidy(year: Path, tmp_path: Path) -> None:
    import csv

    said = profkit("history", "export", "--to", "all.csv", "--history", year, cwd=tmp_path)
    assert said.out == "120 rows in all.csv\n"
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["metric"], float(rows[0]["value"])) == ("time.median", 1e-3 * 0.998)
    again = profkit("history", "export", "--to", "all.csv", "--history", year, cwd=tmp_path)
    assert (again.code, "exists already" in again.err) == (2, True)
    other = profkit("history", "export", "--to", "all.xlsx", "--history", year, cwd=tmp_path)
    assert (other.code, "is no .csv" in other.err) == (2, True)


def test_a_broken_history_is_refused_in_words_by_every_verb(year: Path, tmp_path: Path, run: Path) -> None:
    content = year.read_bytes()
    year.write_bytes(content[: len(content) // 2])
    for verb in (
        ["add", str(run)],
        ["list"],
        ["trend"],
        ["accept", "mlp", "--because", "x"],
        ["export", "--to", "x.csv"],
    ):
        said = profkit("history", *verb, "--history", year, cwd=tmp_path)
        assert said.code == 2
        assert said.err.startswith("error: the history ")
        assert "is damaged: " in said.err
        assert "\n  fix: profkit history add " in said.err
    assert year.read_bytes() == content[: len(content) // 2]


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path, run: Path) -> None:
    theirs = tmp_path / "theirs.sqlite"
    sqlite3.connect(theirs).executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    before = theirs.read_bytes()
    said = profkit("history", "add", run, cwd=tmp_path, env={"PROFKIT_HISTORY": str(theirs)})
    assert (said.code, "is not a history" in said.err) == (2, True)
    assert theirs.read_bytes() == before


def test_names_that_would_harm_a_terminal_do_not(tmp_path: Path) -> None:
    with open_history(tmp_path / "h.sqlite") as history:
        name = "\x1b[31m<script>\n'\"" + "x" * 1000
        history.add(entry(1, value(workload=name), workload=name, commit="\x1b[0m"))
    for verb in (["list"], ["show"], ["trend"], ["prune", "--keep", "1", "--dry-run"]):
        said = profkit("history", *verb, "--history", tmp_path / "h.sqlite", cwd=tmp_path)
        assert said.code == 0, said.err
        assert "\x1b" not in said.out
    told = profkit("history", "list", "--history", tmp_path / "h.sqlite", "--format", "json", cwd=tmp_path)
    assert json.loads(told.out)["runs"][0]["workload"] == name


@pytest.mark.parametrize(
    "verb",
    [
        ("prune", "--keep", "1"),
        ("accept", "mlp", "--because", "x"),
        ("export", "--to", "all.csv"),
    ],
    ids=lambda verb: verb[0],
)
def test_a_history_that_is_not_there_is_not_made_to_be_changed(tmp_path: Path, verb: tuple[str, ...]) -> None:
    said = profkit("history", *verb, "--history", tmp_path / "typo.sqlite", cwd=tmp_path)
    assert said.code == 2
    assert "error: there is no history at" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"{}", b'{"benchmarks": []}', b'{"version": "\xff"}', b"\0\1\2", b"[" * 50_000],
)
def test_what_cannot_be_added_is_refused_with_a_fix(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "damaged.json").write_bytes(content)
    for name in ("damaged.json", "absent", "."):
        said = profkit("history", "add", name, cwd=tmp_path)
        assert said.code == 2
        assert said.err.count("error: ") == said.err.count("fix: ") == 1


def test_a_history_is_never_overwritten_by_a_table_of_it(tmp_path: Path, run: Path) -> None:
    path = tmp_path / "history.csv"
    assert profkit("history", "add", run, "--history", path, cwd=tmp_path).code == 0
    before = path.read_bytes()
    assert profkit("history", "export", "--to", path, "--history", path, cwd=tmp_path).code == 2
    assert path.read_bytes() == before
