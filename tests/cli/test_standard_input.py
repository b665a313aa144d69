"""What is piped into profkit: each run of the program has it, and nobody else loses it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from cli_runner import ENVIRONMENT, PROFKIT

from profkit.core import standard_input
from profkit.core.errors import Silent, UsageError

_COUNT = "import sys\nprint('counted', len(sys.stdin.buffer.read()))\n"
_PROFILE = f"{shlex.join(PROFKIT)} profile --depth quick --budget 3 -- {shlex.quote(sys.executable)} count.py"


def _profile_by_a_shell(folder: Path, line: str, **how: Any) -> tuple[str, set[str], str]:
    """Run a line in which PROFILE stands for the command; what it said, what its runs counted, run.json."""
    (folder / "count.py").write_text(_COUNT)
    words = [how.pop("shell", "sh"), "-c", line.replace("PROFILE", _PROFILE)]
    how = {"stdin": subprocess.DEVNULL, **how}
    done = subprocess.run(
        words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, **how
    )
    counted: set[str] = set()
    for log in folder.glob("reports/*/logs/*.log"):
        counted |= {text for text in log.read_text().splitlines() if text.startswith("counted")}
    runs = "".join(path.read_text() for path in folder.glob("reports/*/run.json"))
    return done.stdout + done.stderr, counted, runs


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("printf 'privately\\n' | PROFILE", 10),
        ("printf 'privately\\n' > lines; PROFILE < lines", 10),
        ("printf 'ab\\nprivately\\n' > lines; { read skipped; PROFILE; } < lines", 10),
        ("head -c 3000000 /dev/urandom | PROFILE", 3000000),
        ("{ sleep 3; echo late; } | PROFILE", 5),  # as `sort` of a large file
        (": | PROFILE", 0),
        ("PROFILE <&-", 0),
        ("PROFILE < /dev/null", 0),
    ],
)
def test_each_run_has_all_of_standard_input(tmp_path: Path, line: str, counted: int) -> None:
    """`cat lines | profkit profile -- python count.py` counted none, in no time."""
    said, seen, runs = _profile_by_a_shell(tmp_path, line)
    assert seen == {f"counted {counted}"}
    assert ("of standard input" in said) is (counted > 0)
    assert "privately" not in runs
    assert not [path for path in Path(tempfile.gettempdir()).glob("profkit-input-*") if path.is_dir()]


@pytest.mark.thorough
def test_what_comes_late_into_a_pipe_with_a_name_is_waited_for(tmp_path: Path) -> None:
    """By bash: dash has what it redirects as its own standard input while the command runs."""
    line = "mkfifo named; { sleep 3; echo late; } > named & PROFILE < named; true"
    _, seen, _ = _profile_by_a_shell(tmp_path, line, shell="bash")
    assert seen == {"counted 5"}


@pytest.mark.thorough
def test_a_pipe_that_nobody_writes_to_holds_nobody_up(tmp_path: Path) -> None:
    source, sink = os.pipe()
    began = time.monotonic()
    try:
        _, seen, _ = _profile_by_a_shell(tmp_path, "exec PROFILE", stdin=source)
    finally:
        os.close(source)
        os.close(sink)
    assert seen == {"counted 0"}
    assert time.monotonic() - began < 30


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line",
    [
        "printf '1\\n2\\n' | while read x; do echo went; PROFILE; done",
        "printf '%s\\n' 'PROFILE' 'echo went' | bash",
    ],
)
def test_a_pipe_that_a_shell_reads_is_left_to_it_and_said(tmp_path: Path, line: str) -> None:
    said, seen, _ = _profile_by_a_shell(tmp_path, line)
    assert said.count("went") == (2 if "while" in line else 1)
    assert seen == {"counted 0"}
    assert "a shell reads the same standard input" in said


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("head -c 67108865 /dev/zero | PROFILE", "FILE"),
        ("head -c 67108865 /dev/zero > 'la rge'; PROFILE < 'la rge'", "la rge"),
    ],
)
def test_input_that_is_too_large_is_an_error_with_the_line_that_names_a_file(
    tmp_path: Path, line: str, file: str
) -> None:
    said, seen, _ = _profile_by_a_shell(tmp_path, line)
    assert "error: standard input has more than 64 MiB" in said
    fix = said.partition("fix: ")[2].splitlines()[0]
    assert shlex.split(fix)[:5] == ["profkit", "profile", "--", "sh", "-c"]
    assert Path(shlex.split(shlex.split(fix)[5])[-1]).name == file
    assert not seen


def test_a_stream_without_an_end_is_an_error_and_no_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(standard_input, "MAX_SECONDS", 0.3)
    source, sink = os.pipe()
    os.write(sink, b"some")
    before = os.dup(0)
    os.dup2(source, 0)
    try:
        reading = standard_input.given_input("profkit profile", ["cat"], Silent())
        with pytest.raises(UsageError, match="did not end") as raised, reading:
            pass
    finally:
        os.dup2(before, 0)
        for handle in (before, source, sink):
            os.close(handle)
    assert raised.value.fix == "profkit profile -- sh -c 'cat < FILE'"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words", [["compare", "--budget", "4", "--a"], ["record", "--tool", "valgrind", "--report", "out"]]
)
def test_the_runs_of_other_commands_have_it_too(tmp_path: Path, words: list[str]) -> None:
    """A program that fails without it."""
    (tmp_path / "count.py").write_text("import sys\nassert len(sys.stdin.read()) == 6\n")
    program = f"{sys.executable} count.py"
    line = [
        *PROFKIT,
        *words,
        *([program, "--b", program] if words[0] == "compare" else ["--", *program.split()]),
    ]
    done = subprocess.run(
        line, cwd=tmp_path, env=ENVIRONMENT, input="lines\n", capture_output=True, text=True
    )
    assert done.returncode in (0, 5), done.stderr
    assert "6 B of standard input" in done.stderr


@pytest.mark.thorough
def test_what_does_not_go_to_another_machine_is_said(tmp_path: Path) -> None:
    line = [*PROFKIT, "profile", "--on", "prefix:false", "--", "true"]
    done = subprocess.run(
        line, cwd=tmp_path, env=ENVIRONMENT, input="lines\n", capture_output=True, text=True
    )
    assert "standard input is not sent" in done.stderr


@pytest.mark.thorough
def test_ctrl_c_ends_the_wait_for_standard_input_and_leaves_no_run(tmp_path: Path) -> None:
    producer = subprocess.Popen(["sleep", "30"], stdout=subprocess.PIPE)
    line = [*PROFKIT, "profile", "--", "true"]
    waiting = subprocess.Popen(
        line, cwd=tmp_path, env=ENVIRONMENT, stdin=producer.stdout, stderr=subprocess.PIPE, text=True
    )
    try:
        assert waiting.stderr is not None
        assert "is read to its end" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        said = waiting.communicate(timeout=20)[1]
    finally:
        producer.kill()
        producer.communicate()
    assert waiting.returncode == 130
    assert "Traceback" not in said
    assert not (tmp_path / "reports").exists()
