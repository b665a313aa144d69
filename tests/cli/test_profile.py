"""`profkit profile` on workloads of every kind, also those that misbehave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import ENVIRONMENT, MARKED, PROFKIT, profkit, runs
from jsonschema import Draft202012Validator

from tests import schemas

QUICK = ("--passes", "timing", "--sampling", "0.1", "--depth", "gate", "--precision", "0.3", "--quiet")


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    script = tmp_path / "squares.py"
    script.write_text(MARKED)
    return script


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["./absent"], 2, "was not found"),
        (["."], 2, "is a folder"),
        (["./plain.txt"], 2, "is not executable"),
        ([sys.executable, "-c", "raise SystemExit(3)"], 4, "exited with 3"),
        ([sys.executable, "-c", "print('its last words'); raise SystemExit(1)"], 4, "its last words"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"], 4, "was killed by SIGSEGV"),
    ],
)
def test_a_workload_that_cannot_run_is_told_in_one_sentence(
    tmp_path: Path, command: list[str], code: int, says: str
) -> None:
    (tmp_path / "plain.txt").write_text("no program")
    said = profkit("profile", *QUICK, "--", *command, cwd=tmp_path)
    assert said.code == code
    assert says in said.err
    assert "Traceback" not in said.err + said.out


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--passes", "bogus"], 2, "no pass called 'bogus'"),
        (["--passes", ""], 2, "names no pass"),
        (["--precision", "0"], 2, "precision"),
        (["--timeout", "-1"], 2, "--timeout"),
        (["--backend", "cuda"], 3, "cuda"),
        (["--targets", "absent.yaml"], 2, "absent.yaml"),
        (["--output", "plain.txt"], 2, "not a folder"),
    ],
)
def test_options_that_make_no_sense_are_told_before_anything_runs(
    tmp_path: Path, options: list[str], code: int, says: str
) -> None:
    (tmp_path / "plain.txt").write_text("")
    said = profkit("profile", *QUICK, *options, "--", sys.executable, "-c", "open('ran', 'w')", cwd=tmp_path)
    assert said.code == code
    assert says in said.err
    assert not (tmp_path / "ran").exists()


def test_an_unknown_metric_in_a_targets_file_is_told_with_the_nearest_known_one(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("targets:\n  mine:\n    metric: cache.l1.mis_rate\n    below: 5\n")
    said = profkit("profile", *QUICK, "--targets", "t.yaml", "--", "true", cwd=tmp_path)
    assert said.code == 2
    assert "line 3" in said.err
    assert "cache.l1.miss_rate" in said.err


def test_a_workload_that_hangs_is_ended_with_its_tree(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(child.pid)); time.sleep(60)"
    )
    said = profkit("profile", *QUICK, "--timeout", "1", "--", sys.executable, "-c", code, cwd=tmp_path)
    assert said.code == 4
    assert "time limit" in said.err
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
    assert runs(tmp_path / "reports")[0]["state"] == "failed"


# ---------------------------------------------------------------- what a run leaves


def test_a_plan_is_printed_and_nothing_runs(tmp_path: Path) -> None:
    said = profkit("profile", "--plan", "--", sys.executable, "-c", "open('ran', 'w')", cwd=tmp_path)
    assert said.code == 0
    assert [word for word in ("timing", "cprofile", "tracemalloc", "counters") if word not in said.out] == []
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "reports").exists()


def test_json_is_one_document_by_the_published_schema_and_alone_on_standard_output(
    tmp_path: Path, marked: Path
) -> None:
    line = ("profile", *QUICK, "--format", "json", "--", sys.executable, marked)
    said = profkit(*line, cwd=tmp_path, env={"PROFKIT_HARMLESS": "all"})
    assert said.code == 0
    document = said.json()
    assert list(Draft202012Validator(schemas.run()).iter_errors(document)) == []
    assert document["state"] == "complete"
    assert document == runs(tmp_path / "reports")[0]
    timing = document["timings"][0]
    assert (timing["name"], timing["kind"], len(timing["processes"])) == ("squares", "benchmark", 1)
    assert len(timing["processes"][0]["seconds"]) >= 6


def test_an_unmarked_workload_is_timed_as_whole_processes(tmp_path: Path) -> None:
    said = profkit("profile", *QUICK, "--format", "json", "--", "sleep", "0.02", cwd=tmp_path)
    timing = said.json()["timings"][0]
    assert timing["kind"] == "process"
    seconds = [s for process in timing["processes"] for s in process["seconds"]]
    assert min(seconds) >= 0.02


def test_a_hostile_name_stays_inside_the_folder_and_on_the_screen(tmp_path: Path) -> None:
    name = "../../x <script>\x1b[31m'\""
    said = profkit("profile", *QUICK, "--name", name, "--", "true", cwd=tmp_path)
    assert said.code == 0
    assert "\x1b" not in said.out
    assert next(p.parent for p in tmp_path.rglob("run.json")).parent == tmp_path / "reports"


@pytest.mark.thorough
def test_check_makes_a_failed_target_exit_1_and_strict_makes_an_unknown_one_5(
    tmp_path: Path, marked: Path
) -> None:
    (tmp_path / "fail.yaml").write_text("targets:\n  quick:\n    metric: time.median\n    below: 1.0e-9\n")
    (tmp_path / "pass.yaml").write_text("targets:\n  quick:\n    metric: time.median\n    below: 1000\n")
    command = ("--", sys.executable, marked)
    assert profkit("profile", *QUICK, "--targets", "fail.yaml", *command, cwd=tmp_path).code == 0
    assert profkit("profile", *QUICK, "--check", "--targets", "fail.yaml", *command, cwd=tmp_path).code == 1
    assert profkit("profile", *QUICK, "--check", "--targets", "pass.yaml", *command, cwd=tmp_path).code == 0
    assert (
        profkit(
            "profile", *QUICK, "--check", "--strict", "--targets", "pass.yaml", *command, cwd=tmp_path
        ).code
        == 5
    )


# ---------------------------------------------------------------- what ends early


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code", "state"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 130, "interrupted"),
        (signal.SIGKILL, -9, "running"),  # it has no last word
    ],
)
def test_an_ended_run_keeps_what_was_finished_and_can_be_read(
    tmp_path: Path, marked: Path, number: int, code: int, state: str
) -> None:
    """It gets the signal as soon as its first timing process is written."""
    options = ("--passes", "timing", "--depth", "full", "--sampling", "1.2")
    process = subprocess.Popen(
        [*PROFKIT, "profile", *options, "--", sys.executable, str(marked)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    reports, deadline = tmp_path / "reports", time.monotonic() + 60
    while not (reports.exists() and (found := runs(reports)) and found[0]["timings"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(timeout=60) == code
    run = runs(reports)[0]
    assert (run["state"], run["timings"][0]["name"]) == (state, "squares")
    assert number == signal.SIGKILL or any(one["metric"] == "time.median" for one in run["readings"])
    said = profkit("summarize", next(reports.iterdir()), cwd=tmp_path)
    assert (said.code, "squares" in said.out) == (0, True)


SERVER = """
import http.server, pathlib, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(sum(i * i for i in range(200_000))).encode())
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
def ask():
    for number in range(100_000):
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
        if number == 60:
            pathlib.Path("asked").touch()
threading.Thread(target=ask, daemon=True).start()
server.serve_forever()
"""


@pytest.mark.thorough
def test_a_server_is_sampled_from_its_start_and_ctrl_c_makes_it_a_finished_run(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    process = subprocess.Popen(
        [*PROFKIT, "profile", "--", sys.executable, "server.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "asked").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    said = process.communicate(timeout=60)[0]
    run = runs(tmp_path / "reports")[0]
    assert (process.returncode, run["state"]) == (0, "complete"), said
    assert [(one["name"], one["state"]) for one in run["passes"]] == [("stacks", "finished")]
    assert "sampled from its start" in said
    assert "--pid PID" in said
    assert "H.do_GET" in said.replace("Handler", "H")
    assert "server.py:7" in said
