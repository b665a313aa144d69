"""A program that runs already: what is seen of it, and that it goes on whatever becomes of those who look."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from profkit.core.run_folder import read_run
from profkit.core.types import RunDocument
from profkit.profilers.host.stacks import read_stacks
from profkit.profilers.programs import find_tool
from profkit.profilers.py_spy import sampled_lines
from profkit.profiling.attach import why_refused
from tests.cli_runner import ENVIRONMENT, PROFKIT, profkit
from tests.spoken import spoken_lines

needs_py_spy = pytest.mark.skipif(find_tool("py-spy", "PROFKIT_PY_SPY") is None, reason="py-spy is not here")
SERVER = """
import multiprocessing, sys, threading, time

def count_up():
    while True:
        sum(number * number for number in range(20000))

def doze():
    while True:
        time.sleep(0.1)

if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=count_up, daemon=True).start()
    threading.Thread(target=doze, daemon=True).start()
    for line in sys.stdin:
        print(line.strip(), flush=True)
"""


class Running:
    """A program that answers on its standard output."""

    def __init__(self, folder: Path) -> None:
        (folder / "server.py").write_text(SERVER)
        self.folder = folder
        words = [sys.executable, "server.py", "--password", "hunter2"]
        self.process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.answers()

    def answers(self) -> bool:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("hello", file=self.process.stdin, flush=True)
        return self.process.stdout.readline() == "hello\n"

    def profkit(self, *words: str) -> subprocess.Popen[str]:
        """A profkit that looks at it, once it does."""
        argv = [*PROFKIT, "profile", "--pid", str(self.process.pid), "-q", *words]
        started = subprocess.Popen(argv, cwd=self.folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        while not list(self.folder.glob("reports/*/logs/stacks-running.log")):
            assert started.poll() is None
            time.sleep(0.05)
        time.sleep(0.7)
        return started


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.process.stdin.close()  # type: ignore[union-attr]
    running.process.wait(10)


def document_in(folder: Path) -> RunDocument:
    return read_run(next(folder.glob("reports/*")))


@pytest.mark.thorough
@needs_py_spy
def test_a_running_program_with_its_children_is_a_run_like_any_other_also_after_ctrl_c(
    server: Running,
) -> None:
    looking = server.profkit("--seconds", "30")
    time.sleep(2)
    looking.send_signal(signal.SIGINT)
    said = looking.communicate()[0]
    document = document_in(server.folder)
    assert (looking.returncode, document.state) == (130, "interrupted")
    assert ("count_up", "python") in {(spot.where.function, spot.kind) for spot in document.hot_spots[:2]}
    sleeping = {line.function: line.other_waits for line in document.sampled[0].lines}["doze"]
    assert max(sleeping, key=sleeping.__getitem__) == "sleep"
    assert document.time_split is not None
    assert document.time_split.cpu is not None
    assert 0 < document.time_split.cpu < 10
    assert "count_up server.py" in said
    written = "".join(
        path.read_text() for path in server.folder.glob("reports/*/**/*") if path.suffix in (".json", ".txt")
    )
    assert "hunter2" not in written
    page = next(server.folder.glob("reports/*/report.md")).read_text()
    assert "not in the report" not in page  # what an attach cannot have
    assert server.answers()


WORK = "def work():\n    for _ in range(20):\n        sum(n * n for n in range(20000))\n"


@contextlib.contextmanager
def running(folder: Path, *command: str) -> Iterator[int]:
    """The process of a command, which has run for a second; all that it started ends behind the block."""
    process = subprocess.Popen(command, cwd=folder, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.thorough
@needs_py_spy
@pytest.mark.parametrize(
    "line", ["python app.py; true", "timeout 60 python app.py; true", "sh -c 'python app.py; true'; true"]
)
def test_the_program_that_a_shell_waits_for_is_looked_at(tmp_path: Path, line: str) -> None:
    (tmp_path / "app.py").write_text(f"{WORK}while True:\n    work()\n")
    with running(tmp_path, "sh", "-c", line.replace("python", sys.executable)) as shell:
        done = profkit("profile", "--pid", str(shell), "--seconds", "1", cwd=tmp_path)
    assert done.code == 0, done.err
    document = document_in(tmp_path)
    assert document.hot_spots[0].where.function == "work"
    assert document.workload.name == "app"
    assert f"Process {shell} is sh and only waits for its child" in " ".join(spoken_lines(document.notes))


@needs_py_spy
def test_a_shell_with_several_programs_is_told_with_the_line_for_each(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(f"{WORK}while True:\n    work()\n")
    with running(tmp_path, "sh", "-c", f"{sys.executable} app.py & {sys.executable} app.py; true") as shell:
        done = profkit("profile", "--pid", str(shell), "--seconds", "1", cwd=tmp_path)
    assert done.code == 2
    assert f"process {shell} is sh and waits for 2 Python programs" in done.err
    assert done.err.count("profkit profile --pid ") == 2


@needs_py_spy
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_master_that_sleeps_has_the_time_of_its_workers(tmp_path: Path, method: str) -> None:
    """As gunicorn's, and uvicorn's with --reload."""
    (tmp_path / "app.py").write_text(
        f"import multiprocessing, time\n{WORK}def serve():\n    while True:\n        work()\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    for _ in range(2):\n        context.Process(target=serve, daemon=True).start()\n"
        "    while True:\n        time.sleep(0.5)\n"
    )
    with running(tmp_path, sys.executable, "app.py") as master:
        done = profkit("profile", "--pid", str(master), "--seconds", "2", cwd=tmp_path)
    assert done.code == 0, done.err
    document = document_in(tmp_path)
    spot = document.hot_spots[0]
    assert (spot.where.function, spot.processes) == ("work", 2)
    assert spot.share > 0.5
    assert "polling" not in {insight.rule for insight in document.insights}


@pytest.mark.thorough
@pytest.mark.perf
def test_a_program_of_machine_code_below_a_shell_is_looked_at(tmp_path: Path) -> None:
    with running(tmp_path, "sh", "-c", "yes > /dev/null; true") as shell:
        done = profkit("profile", "--pid", str(shell), "--seconds", "1", cwd=tmp_path)
    assert done.code == 0, done.err
    document = document_in(tmp_path)
    assert Path(document.workload.command[0]).name in ("yes", "coreutils")
    assert f"Process {shell} is sh and only waits for its child" in " ".join(spoken_lines(document.notes))


@pytest.mark.thorough
@needs_py_spy
def test_a_killed_profkit_leaves_the_program_as_it_was(server: Running) -> None:
    looking = server.profkit("--seconds", "30")
    tools = [child.pid for child in psutil.Process(looking.pid).children() if "record" in child.cmdline()]
    assert len(tools) == 2
    for pid in (looking.pid, *tools):
        os.kill(pid, signal.SIGKILL)
    looking.communicate()
    assert server.answers()
    assert psutil.Process(server.process.pid).children()[0].status() != psutil.STATUS_STOPPED


@pytest.mark.thorough
@pytest.mark.perf
def test_a_program_of_machine_code_is_sampled_by_perf(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "spin.c").write_text(
        "volatile long n; void turn(void) { n = n * 3 + 1; } int main(void) { for (;;) turn(); }"
    )
    subprocess.run([compiler, "-g", "-O0", "-o", "spin", "spin.c"], cwd=tmp_path, check=True)
    running = subprocess.Popen([tmp_path / "spin"])
    try:
        words = ("profile", "--pid", str(running.pid), "--seconds", "1", "-q")
        said = profkit(*words, cwd=tmp_path, process=True)
    finally:
        running.kill()
        running.wait()
    assert said.code == 0
    assert {spot.where.function for spot in document_in(tmp_path).hot_spots} >= {"turn"}


# Its child computes or sleeps for some seconds; nobody asks how it ended.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:])
print(child.pid, flush=True)
sys.stdin.read()
"""
COUNTS = "import time; end = time.time() + {seconds}\nwhile time.time() < end: sum(range(1000))"


@contextlib.contextmanager
def unreaped(*words: str) -> Iterator[int]:
    """The number of a process whose parent never asks how it ended."""
    argv = [sys.executable, "-c", PARENT, *words]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        try:
            yield int(parent.stdout.readline())
        finally:
            parent.stdin.close()


def ends(pid: int) -> None:
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="--pid is for Linux")
def test_what_has_ended_and_waits_for_its_parent_cannot_be_looked_at(tmp_path: Path) -> None:
    with unreaped("true") as pid:
        ends(pid)
        said = profkit("profile", "--pid", str(pid), cwd=tmp_path)
    assert (said.code, f"process {pid} has ended" in said.err) == (2, True)


@pytest.mark.thorough
@needs_py_spy
def test_a_python_that_ends_meanwhile_does_not_go_on_though_nobody_asked_how_it_ended(tmp_path: Path) -> None:
    with unreaped(sys.executable, "-c", COUNTS.format(seconds=8)) as pid:
        time.sleep(1)
        said = profkit("profile", "--pid", str(pid), "--seconds", "30", "-q", cwd=tmp_path)
    assert (said.code, said.err) == (0, "")
    assert any("until it ended" in note for note in spoken_lines(document_in(tmp_path).notes))


@pytest.mark.thorough
@pytest.mark.perf
def test_a_program_of_machine_code_that_ends_meanwhile_is_a_run(tmp_path: Path) -> None:
    with unreaped("sh", "-c", "ulimit -t 2; while :; do :; done") as pid:
        said = profkit("profile", "--pid", str(pid), "--seconds", "90", "-q", cwd=tmp_path)
    assert said.code == 0, said.err
    assert any("until it ended" in note for note in spoken_lines(document_in(tmp_path).notes))


@pytest.mark.thorough
@pytest.mark.perf
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["sleep", "120"], "a time to pass"),
        (["sh", "-c", "sleep 120; :"], "a child process"),
    ],
)
def test_of_a_program_that_sleeps_all_the_time_it_is_said_what_it_waits_for(
    tmp_path: Path, words: list[str], what: str
) -> None:
    with subprocess.Popen(words, start_new_session=True) as running:
        try:
            looks = ("profile", "--pid", str(running.pid), "--seconds", "2", "-q")
            said = profkit(*looks, cwd=tmp_path, process=True)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
    assert said.code == 0, said.err
    notes = spoken_lines(document_in(tmp_path).notes)
    assert any(f"only waited while it was profiled: 1 thread for {what}." in note for note in notes)


@pytest.mark.skipif(not Path("/proc/2/stat").exists(), reason="no thread of the kernel is seen here")
def test_a_thread_of_the_kernel_is_refused_with_a_sentence(tmp_path: Path) -> None:
    name = Path("/proc/2/comm").read_text().strip()
    if psutil.Process(2).cmdline():
        pytest.skip("process 2 is none of the kernel's here")
    said = profkit("profile", "--pid", "2", cwd=tmp_path)
    assert (said.code, f"process 2 is a kernel thread, {name}" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--pid", "4194999"), 2, "there is no process 4194999 here"),
        (("--pid", "-1"), 2, "there is no process -1 here"),
        (("--pid", "1", "--seconds", "0"), 2, "not between 1 s and a day"),
        (("--pid", "1", "--", "ls"), 2, "leave out the command"),
    ],
)
def test_what_cannot_be_looked_at_is_said(
    tmp_path: Path, words: tuple[str, ...], code: int, expected: str
) -> None:
    said = profkit("profile", *words, cwd=tmp_path, env={"PROFKIT_PY_SPY": "/no/such/program"})
    assert said.code == code
    assert expected in said.err


def test_without_py_spy_the_line_that_brings_it_is_said(server: Running) -> None:
    words = ("profile", "--pid", str(server.process.pid))
    said = profkit(*words, cwd=server.folder, env={"PROFKIT_PY_SPY": "/no/such/program"})
    assert (said.code, "pip install 'profkit[attach]'" in said.err) == (3, True)


def test_what_py_spy_says_is_the_reason_of_a_failure(server: Running) -> None:
    program = server.folder / "refuses"
    program.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo py-spy 0 && exit\necho 'Unsupported Python' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    words = ("profile", "--pid", str(server.process.pid), "--seconds", "1")
    said = profkit(*words, cwd=server.folder, env={"PROFKIT_PY_SPY": str(program)})
    assert (said.code, "py-spy failed: Unsupported Python" in said.err) == (3, True)
    assert document_in(server.folder).state == "failed"


@pytest.mark.parametrize(
    ("other", "scope", "fix"),
    [
        ("alice", 1, "sudo env"),
        (None, 0, "--cap-add SYS_PTRACE"),
        (None, 1, "ptrace_scope=0"),
        (None, 3, "reboot"),
    ],
)
def test_a_refusal_has_the_line_that_changes_it(other: str | None, scope: int, fix: str) -> None:
    assert fix in why_refused(7, other, scope)[1]


def test_samples_become_processes_with_times_and_waits(tmp_path: Path) -> None:
    """Also where a command line has several lines and signs that part frames; what can run is scaled to what ran."""
    begin = 'process 7:"python -c import x;\nrun()";thread (7): MainThread;<module> (<string>:2);'
    child = 'process 7:"python";process 9:"python";thread (9): MainThread;work (a.py:5);'
    everything, running = tmp_path / "all", tmp_path / "running"
    everything.write_text(f"{begin}pause (b.py:3) 60\n{begin}spin (b.py:9) 40\n{child}work (a.py:8) 100\n")
    running.write_text(f"{begin}spin (b.py:9) 40\n{child}work (a.py:8) 100\ntorn;")
    kinds = {7: Counter(sleep=2)}
    text = "\n".join(sampled_lines(everything, running, 1.0, 7, {7: 0.2, 9: 1.0}, kinds))
    (tmp_path / "stacks").write_text(text)
    sampled = read_stacks(tmp_path / "stacks").sampled
    assert sampled is not None
    lines = {(line.file, line.line): line for line in sampled.lines}
    assert lines["b.py", 3].waits == {"sleep": pytest.approx(0.6)}
    assert (lines["b.py", 9].main_wall, lines["b.py", 9].main_cpu) == pytest.approx((0.4, 0.2))
    assert (lines["a.py", 8].other_wall, lines["a.py", 8].other_cpu) == pytest.approx((1.0, 1.0))


def test_what_blocks_an_event_loop_is_told_from_the_rest_of_the_loop(tmp_path: Path) -> None:
    """What a thread waits for is asked beside the stacks: most of it may be the loop's own wait for input."""
    row = 'process 7:"python";thread (7): MainThread;<module> (a.py:9);{} {}\n'
    everything, running = tmp_path / "all", tmp_path / "running"
    stacks = ("load (a.py:3)", 40), ("select (/usr/lib/python3.11/selectors.py:468)", 60)
    everything.write_text("".join(row.format(*stack) for stack in stacks))
    running.write_text("")
    text = "\n".join(
        sampled_lines(everything, running, 1.0, 7, {7: 0.0}, {7: Counter(input=6, sleep=4, network=1)})
    )
    (tmp_path / "stacks").write_text(text)
    sampled = read_stacks(tmp_path / "stacks").sampled
    assert sampled is not None
    lines = {(line.file, line.line): line.waits for line in sampled.lines}
    assert lines["a.py", 3] == {"sleep": pytest.approx(0.4)}
    assert lines["a.py", 9] == {"input": pytest.approx(0.6)}
