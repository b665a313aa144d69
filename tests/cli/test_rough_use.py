"""Rough use: workloads that harm their own run, terminals that go away, ends at the wrong moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import ENVIRONMENT, MARKED, PROFKIT, profkit, runs

QUICK = ("--passes", "timing", "--sampling", "0.1", "--depth", "gate", "--precision", "0.4", "--quiet")
GOOD = "1000,,cycles,100,100.00,,\n3000,,instructions,100,100.00,,\n"


# ---------------------------------------------------------------- a fault is a document, too


@pytest.mark.parametrize(
    "arguments",
    [
        ("summarize", "absent", "--format", "json"),
        ("check", "plain.txt", "--format", "json"),
        ("check", "good.csv", "--targets", "absent.yaml", "--format", "json"),
        ("profile", *QUICK, "--format", "json", "--", "./absent"),
        ("profile", *QUICK, "--format", "json", "--backend", "cuda", "--", "true"),
        ("profile", *QUICK, "--format", "json", "--", ""),
    ],
)
def test_a_fault_is_one_json_document_where_json_was_asked_for(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "plain.txt").write_text("no report")
    (tmp_path / "good.csv").write_text(GOOD)
    said = profkit(*arguments, cwd=tmp_path)
    document = said.json()
    assert document["schema"] == "profkit.error/1"
    assert document["error"]["exit_code"] == said.code
    assert document["error"]["message"] in said.err


def test_a_failed_workload_leaves_its_run_as_the_document(tmp_path: Path) -> None:
    said = profkit("profile", *QUICK, "--format", "json", "--", "false", cwd=tmp_path)
    assert said.code == 4
    assert said.json()["state"] == "failed"
    assert "exited with 1" in said.json()["failure"]


# ---------------------------------------------------------------- workloads against their own run

HARM = {
    "removes its run's folder": "import glob, shutil\nfor p in glob.glob('reports/*'): shutil.rmtree(p)",
    "overwrites its run": "import glob\nfor p in glob.glob('reports/*'): open(p + '/run.json', 'w').write('{')",
    "writes garbage where records are": (
        "import glob\nfor p in glob.glob('reports/*'): open(p + '/artifacts/timing-1.7.json', 'w').write('{\\0')"
    ),
}


@pytest.mark.parametrize("code", HARM.values(), ids=HARM)
def test_a_workload_that_harms_its_own_run_is_measured_all_the_same(tmp_path: Path, code: str) -> None:
    line = ("profile", *QUICK, "--format", "json", "--", sys.executable, "-c", code)
    said = profkit(*line, cwd=tmp_path, env={"PROFKIT_HARMLESS": "all"})
    assert (said.code, said.json()["state"]) == (0, "complete")
    assert runs(tmp_path / "reports") == [said.json()]
    assert sorted(path.name for path in (tmp_path / "reports").glob("*/.*")) == []


# ---------------------------------------------------------------- standard output


@pytest.mark.thorough
def test_a_reader_that_goes_away_changes_no_exit_code(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(GOOD.replace("3000", "300"))
    for expected, arguments in ((1, ("check", "bad.csv")), (2, ("check", "absent"))):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [*PROFKIT, *arguments, "--format", "json"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(write)
        assert done.returncode == expected
        assert "Broken" not in done.stderr


def test_a_terminal_that_knows_only_ascii_gets_escapes_and_json_stays_utf8(tmp_path: Path) -> None:
    (tmp_path / "café.csv").write_text(GOOD)
    plain = {"PYTHONIOENCODING": "ascii"}
    assert profkit("summarize", "café.csv", cwd=tmp_path, env=plain).code == 0
    said = profkit("summarize", "café.csv", "--format", "json", cwd=tmp_path, env=plain)
    assert said.json()["name"] == "café.csv"


def test_bars_are_ascii_where_a_terminal_knows_nothing_else() -> None:
    code = "from profkit import cli; cli._make_streams_tolerant(); print('│▄▄█░·é')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "|44#?.\\xe9\n"


# ---------------------------------------------------------------- ends


@pytest.mark.thorough
@pytest.mark.parametrize("delay", [0.05, 0.3])
def test_two_ctrl_c_in_a_row_leave_a_readable_run_and_no_process(tmp_path: Path, delay: float) -> None:
    (tmp_path / "w.py").write_text(
        MARKED.replace("import profkit", "import time, profkit; time.sleep(30)", 1)
    )
    process = subprocess.Popen(
        [*PROFKIT, "profile", *QUICK, "--format", "json", "--", sys.executable, "w.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not list((tmp_path / "reports").glob("*/run.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, err = process.communicate(timeout=30)
    # Two signals within 50 ms may meet the interpreter between any two instructions, and then it ends by the signal.
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in err or process.returncode == -signal.SIGINT
    assert runs(tmp_path / "reports")[0]["name"] == "w"
    assert _workloads(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_output_onto_a_full_disk_is_the_machines_refusal_with_a_fix(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROFKIT, "nightly", "--example"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
    assert done.returncode == 3
    assert done.stderr == "error: cannot write the output: No space left on device\n  fix: df -h\n"


def _workloads(folder: Path) -> list[str]:
    """Processes that work in `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if path.resolve() == folder.resolve():
                found.append((path.parent / "cmdline").read_text())
        except OSError:
            continue
    return [line for line in found if line]


def test_a_program_that_reads_its_input_fails_with_the_line_that_gives_it_some(tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text("print(int(input('n? ')))\n")
    said = profkit("profile", "--depth", "quick", "--", sys.executable, "ask.py", cwd=tmp_path)
    assert said.code == 4
    assert (
        f"fix: its standard input is empty here: profkit profile -- sh -c '{sys.executable} ask.py < FILE'"
        in said.err
    )


def test_a_program_that_runs_once_only_fails_with_the_line_that_removes_what_it_left(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text("import os, time\ntime.sleep(0.2)\nos.mkdir('my results')\n")
    said = profkit("profile", "--depth", "quick", "--", sys.executable, "once.py", cwd=tmp_path)
    assert said.code == 4
    assert "the workload ran once and then failed; profkit runs it several times" in said.err
    assert "rm -rf '\"'\"'my results'\"'\"'; " in said.err


@pytest.mark.parametrize(
    ("statement", "runs_well"),
    [
        ("import sqlite3; sqlite3.connect('my.db').execute('CREATE TABLE runs (x)')", "once"),
        ("os.rename('input', 'done')", "once"),
        ("os.path.exists('x.lock') and sys.exit('another instance is running'); open('x.lock', 'w')", "once"),
        ("open('n', 'a').write('.'); assert os.path.getsize('n') < 3", "2 times"),
    ],
)
def test_a_program_that_cannot_run_again_is_told_so_with_the_line_that_prepares_it(
    tmp_path: Path, statement: str, runs_well: str
) -> None:
    (tmp_path / "input").touch()
    (tmp_path / "once.py").write_text(f"import os, sys, time\ntime.sleep(0.2)\n{statement}\n")
    said = profkit("profile", "--depth", "quick", "--", sys.executable, "once.py", cwd=tmp_path)
    assert said.code == 4
    assert f"the workload ran {runs_well} and then failed" in said.err
    assert f"fix: profkit profile -- sh -c 'PREPARE; {sys.executable} once.py'   (PREPARE: " in said.err


@pytest.mark.thorough
def test_a_program_that_stops_tracemalloc_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "stops.py").write_text(
        "import tracemalloc\ntracemalloc.start()\nx = [0] * 9\ntracemalloc.stop()\n"
    )
    words = ("profile", "--passes", "timing,tracemalloc", "--quiet", "--", sys.executable, "stops.py")
    assert profkit(*words, cwd=tmp_path).code == 0
    passes = {one["name"]: one for one in runs(tmp_path / "reports")[0]["passes"]}
    assert passes["tracemalloc"]["state"] == "failed"
    assert "the workload stopped tracemalloc" in str(passes["tracemalloc"]["reason"])


@pytest.mark.thorough
@pytest.mark.parametrize("call", ["python train", "./train"])
def test_a_script_without_a_suffix_has_its_places_and_its_name(tmp_path: Path, call: str) -> None:
    """As Debian asks of what lies in bin/."""
    (tmp_path / "train").write_text(
        f"#!{sys.executable}\ndef work():\n    sum(n * n for n in range(3_000_000))\n\nwork()\n"
    )
    (tmp_path / "train").chmod(0o755)
    words = (
        "profile",
        "--passes",
        "timing,stacks",
        "--quiet",
        "--",
        *call.replace("python", sys.executable).split(),
    )
    assert profkit(*words, cwd=tmp_path).code == 0
    (document,) = runs(tmp_path / "reports")
    spot = document["hot_spots"][0]
    assert (document["name"], spot["where"]["function"], spot["where"]["line"]) == ("train", "work", 3)
    assert spot["share"] > 0.5


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_program_that_becomes_another_user_is_told_so_where_its_passes_are_lost(tmp_path: Path) -> None:
    source = "import os\nsum(i % 7 for i in range(10**6))\nos.setgid(65534); os.setuid(65534)\n"
    (tmp_path / "drops.py").write_text(source)
    line = ("profile", "--passes", "timing,cprofile", "--quiet", "--format", "json")
    said = profkit(*line, "--", sys.executable, "drops.py", cwd=tmp_path, process=True)
    found = {one["name"]: (one["state"], one["reason"]) for one in said.json()["passes"]}
    assert found["cprofile"][0] == "failed", found
    assert found["cprofile"][1]["code"] == "output-refused"
