"""A step whose tool has somebody else start the workload, has a time limit of its own, and ends the workload itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from profkit.core.types import Step
from profkit.profiling.run_steps import RunSettings, argv_with_environment, run_step
from tests.conftest import ROOT

TOOL = """
import os, signal, sys, time
asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(time.time()))
open("began", "w").write(str(os.getpid()))
child = os.fork()
if child == 0:
    signal.signal(signal.SIGINT, lambda *_: open("child-asked", "w").write("x"))
    while True: time.sleep(0.05)
while not asked: time.sleep(0.01)
os.kill(child, signal.SIGKILL); os.waitpid(child, 0)
time.sleep({saving}); open("report", "w").write("whole")
"""


def step(tmp_path: Path, code: str, **told: object) -> Step:
    file = tmp_path / "tool.py"
    file.write_text(code)
    return Step("trace", (sys.executable, str(file)), **told)  # type: ignore[arg-type]


def test_the_tool_alone_is_asked_to_end_and_has_time_to_finish(tmp_path: Path) -> None:
    tool = step(tmp_path, TOOL.format(saving=0.3), finish=20.0, tool="xctrace")
    begin = time.monotonic()
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tool, tmp_path, told=told)
    assert (tmp_path / "report").read_text() == "whole"
    assert not (tmp_path / "child-asked").exists()
    assert time.monotonic() - begin < 15
    assert told == ["xctrace is saving its recording; a second Ctrl-C stops that and loses the recording"]


def test_a_second_ctrl_c_ends_the_patience(tmp_path: Path) -> None:
    tool = step(tmp_path, TOOL.format(saving=600), finish=600.0)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tool, tmp_path, again=0.5)
    assert not (tmp_path / "report").exists()
    assert time.monotonic() - begin < 20


def _interrupted(tool: Step, folder: Path, again: float | None = None, told: list[str] | None = None) -> None:
    """Run `tool`, with a Ctrl-C as soon as it began."""

    def press() -> None:
        while not (folder / "began").exists():
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        if again is not None:
            time.sleep(again)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        run_step(tool, RunSettings(folder, cwd=str(folder), note=told.append if told is not None else None))
    finally:
        thread.join()


def test_a_deadline_lets_the_tool_finish_by_its_own_time_limit_first(tmp_path: Path) -> None:
    """The tool knows the limit; only what goes beyond the time for its report is profkit's to end."""
    settings = RunSettings(tmp_path, timeout=0.2)
    done = run_step(step(tmp_path, "import time; time.sleep(0.6)", finish=10.0, own_limit=True), settings)
    assert done.workload_ok
    late = run_step(step(tmp_path, "import time; time.sleep(60)", finish=0.2, own_limit=True), settings)
    assert late.outcome.timed_out


def test_the_workloads_status_may_be_brought_by_a_conversion(tmp_path: Path) -> None:
    status = tmp_path / "status"
    bring = (sys.executable, "-c", f"open({str(status)!r}, 'w').write('7')")
    tool = step(tmp_path, "pass", workload_status=str(status), after=(bring,))
    assert run_step(tool, RunSettings(tmp_path)).status == 7


def test_the_tool_is_told_what_the_workload_would_inherit_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/a b/c")
    monkeypatch.setenv("MINE", "x=\n'y\"")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("SHLVL", "3")
    monkeypatch.setenv("HUGE", "x" * 100_000)
    tool = Step("trace", ("xctrace", "record", "--launch", "--", "a"), tells="--env", env={"SET": "1"})
    argv = argv_with_environment(tool, {"SET": "1", "PROFKIT_DIRECTIVE": "{}"})
    pairs = [argv[i + 1] for i, word in enumerate(argv) if word == "--env"]
    assert {"PYTHONPATH=/a b/c", "MINE=x=\n'y\"", "SET=1", "PROFKIT_DIRECTIVE={}"} <= set(pairs)
    names = {pair.partition("=")[0] for pair in pairs}
    assert not names & {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "SHLVL", "HUGE"}
    assert argv[:2] == ("xctrace", "record")
    assert argv[-3:] == ("--launch", "--", "a")


FULL = """
import sys
from pathlib import Path
from profkit.core.types import PassPlan, Step
from profkit.profiling.run_passes import run_pass
from profkit.profiling.run_steps import RunSettings
folder, body = Path(sys.argv[1]), sys.argv[2]
argv = ("sh", "-c", body, str(folder / "artifacts" / "large"))
status = str(folder / "artifacts" / "trace.status")
steps = (Step("trace", argv, tool="perf", workload_status=status),)
done = run_pass(PassPlan("trace", "perf", steps), RunSettings(folder))
print(done.result.reason.names["text"], done.result.fix, done.workload_failure, sep="|")
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        # perf -q says nothing
        (
            'cat /dev/zero >"$0" 2>/dev/null; exit 255',
            "the disk is full, so perf could not write its file|df -h {}|None",
        ),
        (
            'echo 3 >"${0%large}trace.status"; cat /dev/zero >"$0" 2>/dev/null; exit 3',
            "the workload exited with 3 in trace",
        ),
        ("exit 255", "and how the workload ended is not known"),
    ],
)
def test_a_full_disk_is_told_where_the_tool_failed_and_not_the_workload(
    tmp_path: Path, body: str, said: str
) -> None:
    mount = f'mount -t tmpfs -o size=1m none "{tmp_path}" && exec "$@"'
    inside = ("unshare", "-rm", "sh", "-c", mount, "sh")
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    argv = [*inside, sys.executable, "-c", FULL, str(tmp_path), body]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert said.format(tmp_path) in done.stdout, done.stderr
