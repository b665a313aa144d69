"""A recorded file of sampled Python stacks, read; torn, foreign and scrubbed ones, too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.stacks.python_code import PythonSample, PythonTally
from profkit.analysis.stacks.wall_time import THREAD, WAIT, is_wall_time
from profkit.backends.source_lines import split_notes, with_source
from profkit.core.errors import UnreadableReport
from profkit.core.types import Frame, Hotspot, LineSamples, Profile, Report
from profkit.profilers.host.stacks import read_stacks, read_wall_time
from profkit.reporting.views.run_insights import does_text
from tests import documents
from tests.conftest import ROOT
from tests.spoken import spoken_lines

RECORDED = ROOT / "tests" / "data" / "stacks" / "pool.jsonl"


@pytest.fixture(scope="module")
def recorded() -> Report:
    return read_stacks(RECORDED)


def of(report: Report, kind: str) -> Profile:
    return next(profile for profile in report.profiles if profile.kind == kind)


def spot(profile: Profile, function: str) -> Hotspot:
    return next(one for one in profile.hotspots if one.function == function)


def line_of(report: Report, function: str, number: int) -> LineSamples:
    assert report.sampled is not None
    return next(one for one in report.sampled.lines if (one.function, one.line) == (function, number))


def test_the_function_of_the_workers_is_the_hottest_with_its_line_and_its_caller(recorded: Report) -> None:
    functions = of(recorded, "sampled-functions")
    first = functions.hotspots[0]
    assert (first.function, first.line) == ("collatz", 7)
    assert first.lines[0].line == 9
    assert first.callers[0].function == "mapstar"
    assert first.own > 0.4 * functions.total
    assert sum(one.own for one in functions.hotspots) <= functions.total


def test_a_line_counts_for_the_library_that_it_calls(recorded: Report) -> None:
    dump = line_of(recorded, "dump", 16)
    assert dump.own < 0.01 < 0.2 < dump.main_cpu + dump.other_cpu
    assert dump.callees[0].function == "dumps"
    assert (dump.callers[0].function, dump.callers[0].line) == ("main", 28)


def test_a_line_that_sleeps_waits_and_does_not_run(recorded: Report) -> None:
    sleeping = line_of(recorded, "wait", 20)
    assert 0.4 < sleeping.main_wall - sleeping.main_cpu < 0.5
    assert sleeping.main_wall + sleeping.other_wall > 0.8
    assert sleeping.main_cpu + sleeping.other_cpu < 0.05


def test_threads_of_one_name_stand_together_and_the_first_process_apart(recorded: Report) -> None:
    threads = of(recorded, "sampled-threads")
    mains = [one for one in threads.hotspots if one.function == "main"]
    assert [(one.counters["threads"], one.counters["first_process"]) for one in mains] == [(2, 0), (1, 1)]
    assert spot(threads, "waiting").own < 0.01


def test_stacks_are_by_processor_time_and_by_the_main_threads_wall_time(recorded: Report) -> None:
    wall, running, waiting = recorded.stacks
    assert is_wall_time(wall)
    assert sum(running.weights.values()) == pytest.approx(of(recorded, "sampled-functions").total)
    assert sum(waiting.weights.values()) > 2
    assert all(stack[0].function == "<module>" for stack in waiting.weights)
    imports = [
        frame.function for stack in running.weights for frame in stack if frame.function.startswith("import ")
    ]
    assert "import multiprocessing" in imports


def test_the_wall_time_of_all_threads_is_what_ran_and_what_waited_by_kind(recorded: Report) -> None:
    wall, running, waiting = recorded.stacks
    ran = sum(seconds for frames, seconds in wall.weights.items() if frames[-1].library != WAIT)
    assert ran == pytest.approx(sum(running.weights.values()))
    # The one of the first process's main thread begins with its name, and is as long as its wall time.
    main = sum(seconds for frames, seconds in wall.weights.items() if frames[0] == Frame("main", THREAD))
    assert main == pytest.approx(sum(waiting.weights.values()))


def written(**more: object) -> str:
    """One process of a thread that was in stack 2 for 3 s and in stack 3 for 1 s, and ran for 2 s and 0.5 s of it."""
    head = {
        "schema": "profkit.stacks/1",
        "process": "1.7",
        "pid": 7,
        "program": "app.py",
        "seconds": 4,
        "cost": 0,
    }
    tables = {
        "functions": [[2, "work", "/src/app.py", 1], [3, "load", "/src/app.py", 9]],
        "nodes": [[2, 0, 2, 3], [3, 0, 3, 11]],
        "threads": [[0, "main"]],
        "samples": [[2, 0, 0, 3_000_000, 2_000_000, 600], [3, 0, 0, 1_000_000, 500_000, 200]],
        "waits": [[3, 0, "file", 400_000]],
    }
    return json.dumps({**head, **tables, "entries": 0, "end": True, **more}) + "\n"


def test_native_code_is_put_below_the_stack_that_its_thread_was_in_at_that_time(tmp_path: Path) -> None:
    moments = [[0, 2 if n < 75 else 3, n * 40_000] for n in range(100)]
    path, text = tmp_path / "stacks.jsonl", tmp_path / "perf.txt"
    path.write_text(written(moments=moments, natives=[[0, 70]], monotonic=1000.0))
    rows = []
    for n in range(400):
        where = (
            "dgemm_kernel (/lib/libblas.so)" if n % 4 == 0 else "PyDict_GetItem (/lib/libpython3.12.so.1.0)"
        )
        where = where if n < 300 else "inflate (/lib/libz.so)"
        rows.append(f"  python  7/70  {1000 + n / 100:.6f}:  10000000 cpu-clock:  7fa8 {where}")
    for n in range(50):
        rows.append(
            f"  openmp  7/71  {1000 + n / 100:.6f}:  10000000 cpu-clock:  7fa8 dgemm_kernel (/lib/libblas.so)"
        )
    rows.append("  other  9/9  1000.500000:  10000000 cpu-clock:  7fa8 not_ours (/lib/libz.so)")
    text.write_text("\n".join(rows) + "\n")
    wall = read_wall_time(path, text)
    assert wall is not None
    found = {" ".join(one.function for one in frames): seconds for frames, seconds in wall.weights.items()}
    assert found.pop("main load") < 0.01  # a sample between two stacks
    assert found == {
        "main work": pytest.approx(1.5, abs=0.02),  # the interpreter itself: that is Python
        "main work dgemm_kernel": pytest.approx(0.5, abs=0.02),
        "main work waits; for what is not known": pytest.approx(1.0),
        "main load inflate": pytest.approx(0.5, abs=0.02),
        "main load waits for a file": pytest.approx(0.4),
        "main load waits; for what is not known": pytest.approx(0.1),
        "openmp, without Python dgemm_kernel": pytest.approx(0.5),
    }


def test_samples_of_another_run_are_not_put_below_pythons(tmp_path: Path) -> None:
    path, text = tmp_path / "stacks.jsonl", tmp_path / "perf.txt"
    text.write_text("  python  7/70  1000.500000:  10000000 cpu-clock:  7fa8 inflate (/lib/libz.so)\n")
    path.write_text(written())  # no moment was kept: perf was not there
    assert read_wall_time(path, text) is None
    path.write_text(written(moments=[[0, 2, 10_000]], natives=[[0, 70]], monotonic=5000.0))
    assert read_wall_time(path, text) is None


def test_a_wait_in_a_region_is_no_longer_than_what_did_not_run_in_it(tmp_path: Path) -> None:
    path = tmp_path / "stacks.jsonl"
    path.write_text(
        written(entries=1, samples=[[3, 0, 1, 300_000, 100_000, 60], [3, 0, 0, 700_000, 400_000, 140]])
    )
    wall = next(one for one in read_stacks(path).stacks if is_wall_time(one))
    assert {frames[-1].function: seconds for frames, seconds in wall.weights.items()} == {
        "load": pytest.approx(0.1),
        "waits for a file": pytest.approx(0.2),
    }


def test_a_torn_line_is_passed_over_and_said(tmp_path: Path, recorded: Report) -> None:
    text = RECORDED.read_text()
    torn = tmp_path / "torn.jsonl"
    torn.write_text(text[:-200])
    report = read_stacks(torn)
    assert "skipped 1 line of the sampled stacks that could not be read" in " ".join(
        spoken_lines(report.warnings)
    )
    assert of(report, "sampled-functions").hotspots[0].function == "collatz"
    assert [one.code for one in recorded.warnings] == ["rough-shares"]  # a short program


def test_shares_of_few_samples_are_said_to_be_rough_and_those_of_many_are_not(tmp_path: Path) -> None:
    document = {
        "schema": "profkit.stacks/1",
        "process": "1.1",
        "cost": 0.01,
        "entries": 0,
        "threads": [[0, "main"]],
    }
    said = {}
    for count, seconds in ((200, 1.0), (400, 1.0), (20, 0.1)):
        path = tmp_path / f"{count}.jsonl"
        samples = [[1, 0, 0, 1000, 1000, count]]
        path.write_text(json.dumps({**document, "seconds": seconds, "samples": samples}) + "\n")
        said[count] = [fact.code for fact in read_stacks(path).warnings if fact.code == "rough-shares"]
        twice = [fact.code for fact in read_stacks(path, [path]).warnings if fact.code == "rough-shares"]
        assert twice == []  # two runs of it have twice the samples, or took no time
    assert said == {200: ["rough-shares"], 400: [], 20: []}


def test_only_the_region_counts_where_one_was_entered(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines() if line]
    for line in lines:
        line["entries"] = 1
    marked = tmp_path / "marked.jsonl"
    marked.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = read_stacks(marked)
    assert of(report, "sampled-functions").total == 0
    assert of(report, "sampled-imports").total > 0.1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        '{"schema": "profkit.stacks/1"}\n',
        '{"schema": "profkit.stacks/1", "process": "1.1", "seconds": 1, "cost": 0, "entries": 0, '
        '"nodes": [[2, 2, 2, 1]], "samples": []}\n',
        "[" * 100_000,
    ],
)
def test_a_file_that_holds_no_stacks_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(UnreadableReport, match="no sampled stacks"):
        read_stacks(path)


def test_the_work_of_joblibs_workers_is_at_the_line_that_waits_for_them(tmp_path: Path) -> None:
    site = "/venv/lib/python3.12/site-packages"
    common = {
        "schema": "profkit.stacks/1",
        "seconds": 2.0,
        "cost": 0.01,
        "entries": 0,
        "threads": [[0, "main"]],
    }
    program = {
        **common,
        "process": "1.1",
        "functions": [
            [2, "<module>", "/work/cv.py", 1],
            [3, "cross_val_score", f"{site}/sklearn/model_selection/_validation.py", 500],
        ],
        "nodes": [[2, 0, 2, 7], [3, 2, 3, 654]],
        "samples": [[3, 0, 0, 2_000_000, 20_000, 200]],
        "waits": [[3, 0, "sleep", 1_900_000]],
    }
    worker = {
        **common,
        "process": "2.2",
        "functions": [
            [2, "_process_worker", f"{site}/joblib/externals/loky/process_executor.py", 400],
            [3, "_fit_and_score", f"{site}/sklearn/model_selection/_validation.py", 700],
            [4, "DecisionTreeClassifier.fit", f"{site}/sklearn/tree/_classes.py", 990],
        ],
        "nodes": [[2, 0, 2, 460], [3, 2, 3, 858], [4, 3, 4, 1015]],
        "samples": [[4, 0, 0, 1_500_000, 1_400_000, 150], [2, 0, 0, 400_000, 100_000, 40]],
    }
    path = tmp_path / "stacks.jsonl"
    path.write_text(f"{json.dumps(program)}\n{json.dumps(worker)}\n")
    sampled = read_stacks(path).sampled
    assert sampled is not None
    (line,) = sampled.lines
    assert (line.file, line.line, line.processes) == ("/work/cv.py", 7, 1)
    assert (line.main_wall, line.other_cpu) == pytest.approx((2.0, 1.4))
    assert [one.function for one in line.callees] == ["cross_val_score", "DecisionTreeClassifier.fit"]
    assert sampled.rest_cpu == pytest.approx(0.1)  # what the pool does for itself


def test_a_line_that_calls_a_library_is_opened_to_the_public_functions_that_take_the_time(
    tmp_path: Path,
) -> None:
    site = "/venv/lib/python3.12/site-packages/sklearn"
    chain = [
        ("<module>", "/work/cv.py", 8),
        ("validate_params.<locals>.wrapper", f"{site}/utils/_param_validation.py", 218),
        ("cross_val_score", f"{site}/model_selection/_validation.py", 684),
        ("cross_validate", f"{site}/model_selection/_validation.py", 411),  # leads to the next alone
        ("_fit_and_score", f"{site}/model_selection/_validation.py", 858),
        ("BaseGradientBoosting.fit", f"{site}/ensemble/_gb.py", 700),
        ("DecisionTreeRegressor.fit", f"{site}/tree/_classes.py", 1377),
    ]
    document = {
        "schema": "profkit.stacks/1",
        "process": "1.1",
        "seconds": 1.0,
        "cost": 0.01,
        "entries": 0,
        "threads": [[0, "main"]],
        "functions": [[n, name, file, 1] for n, (name, file, _) in enumerate(chain, 2)],
        "nodes": [[n, n - 1 if n > 2 else 0, n, line] for n, (_, _, line) in enumerate(chain, 2)],
        "samples": [[8, 0, 0, 700_000, 700_000, 70], [7, 0, 0, 300_000, 300_000, 30]],
    }
    path = tmp_path / "stacks.jsonl"
    path.write_text(json.dumps(document) + "\n")
    run = replace(documents.empty(), sampled=tuple(filter(None, [read_stacks(path).sampled])))
    (opened, _rest) = hot_spots(run)
    assert [(one.function, round(one.value, 2)) for one in opened.inside] == [
        ("BaseGradientBoosting.fit", 1.0),
        ("DecisionTreeRegressor.fit", 0.7),
    ]
    assert does_text(opened) == "runs: cross_val_score; 70 % in DecisionTreeRegressor.fit"


def test_a_line_is_not_opened_to_what_is_private_or_small(tmp_path: Path) -> None:
    file = "/venv/lib/python3.12/site-packages/pandas/core/frame.py"
    names = ["DataFrame.apply", "DataFrame._get_value", "Index.lookup"]
    document = {
        "schema": "profkit.stacks/1",
        "process": "1.1",
        "seconds": 1.0,
        "cost": 0.01,
        "entries": 0,
        "threads": [[0, "main"]],
        "functions": [
            [2, "<module>", "/work/a.py", 1],
            *([n, name, file, n] for n, name in enumerate(names, 3)),
        ],
        "nodes": [[2, 0, 2, 3], [3, 2, 3, 9], [4, 3, 4, 9], [5, 3, 5, 9]],
        "samples": [[4, 0, 0, 800_000, 800_000, 80], [5, 0, 0, 200_000, 200_000, 20]],
    }
    path = tmp_path / "stacks.jsonl"
    path.write_text(json.dumps(document) + "\n")
    sampled = read_stacks(path).sampled
    assert sampled is not None
    assert [one.function for one in sampled.lines[0].callees] == ["DataFrame.apply"]
    assert sampled.lines[0].inside == ()


@pytest.mark.parametrize(
    ("stood", "went", "text"),
    [
        (20, 1, "runs Python code; nearby lines may account for a part of this"),
        (20, 5, "runs Python code"),  # works without the lock now and then
        (7, 0, "runs Python code"),  # may be chance
    ],
)
def test_a_row_says_that_lines_beside_it_may_have_a_part_where_it_lets_go_of_the_lock_for_a_moment(
    tmp_path: Path, stood: int, went: int, text: str
) -> None:
    source = tmp_path / "a.py"
    source.write_text("while True:\n    [n * n for n in numbers]\n    poll.poll(0)\n")
    document = {
        "schema": "profkit.stacks/1",
        "process": "1.1",
        "seconds": 1.0,
        "cost": 0.01,
        "entries": 0,
        "threads": [[0, "main"]],
        "functions": [[2, "<module>", str(source), 1]],
        "nodes": [[2, 0, 2, 3]],
        "samples": [[2, 0, 0, 1_000_000, 1_000_000, 100]],
        "trials": 30,
        "given": [[2, stood, went]],
    }
    path = tmp_path / "stacks.jsonl"
    path.write_text(json.dumps(document) + "\n")
    workload = replace(documents.empty().workload, folder=str(tmp_path))
    lines = with_source(read_stacks(path), workload)
    assert lines is not None
    run = replace(documents.empty(), sampled=(lines,))
    run = replace(run, hot_spots=hot_spots(run))
    assert does_text(run.hot_spots[0]) == text
    assert [fact.names["line"] for fact in split_notes(lines)] == (["a.py:3"] if ";" in text else [])


def test_a_run_says_what_of_threads_that_take_turns_no_sample_places(tmp_path: Path) -> None:
    document = {
        "schema": "profkit.stacks/1",
        "process": "1.1",
        "seconds": 1.0,
        "cost": 0.01,
        "entries": 0,
        "threads": [[0, "main"]],
        "samples": [],
    }
    said = {}
    for unplaced in (0.9, 0.2):
        path = tmp_path / f"{unplaced}.jsonl"
        path.write_text(json.dumps({**document, "turns": [1.0, unplaced]}) + "\n")
        said[unplaced] = [one.code for one in read_stacks(path).warnings if one.code.startswith("turns")]
    assert said == {0.9: ["turns-not-told-apart"], 0.2: []}


def test_lines_of_the_program_outside_of_regions_are_added_up_without_imports_and_other_threads() -> None:
    main, library = (
        Frame("<module>", "", "/app/t.py", 1),
        Frame("loads", "", "/usr/lib/python3.11/json/__init__.py", 1),
    )
    tally = PythonTally()
    tally.add_outside(PythonSample((main, library), (3, 20), 1.0, 1.5, first=True))
    tally.add_outside(PythonSample((main,), (3,), 0.5, 0.5, first=True))
    tally.add_outside(PythonSample((main, None), (1, 0), 9.0, 9.0, first=True))
    tally.add_outside(PythonSample((main,), (7,), 9.0, 9.0, first=False))
    (profile,) = (one for one in tally.profiles({}) if one.kind == "sampled-outside")
    assert [(one.file, one.line, one.total) for one in profile.hotspots] == [("/app/t.py", 3, 2.0)]
