"""`profkit mcp`, spoken to by the SDK's own client."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("mcp", reason="the package mcp is not installed")

from mcp.server.mcpserver.exceptions import ToolError

from profkit.fronts.answers import MOST, of_run, text_of
from profkit.fronts.mcp import Tools
from profkit.profiling.api import Run
from tests.documents import document as recorded
from tests.fronts.agent_trial import ENVIRONMENT, LOOKUP, connected, find_change_prove, project, text_in

T = TypeVar("T")


def finished(work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, in a thread of its own: tests of pages keep an event loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.mark.timed
def test_the_slow_line_is_found_changed_and_the_change_is_proven(tmp_path: Path) -> None:
    said = finished(find_change_prove(LOOKUP, project(tmp_path / "p", LOOKUP.text)))
    assert "time.median fell" in said


def test_an_answer_fits_and_the_next_rows_are_asked_for_by_their_number() -> None:
    many = replace(recorded(), readings=recorded().readings * 200)
    known = [reading for reading in many.readings if reading.value is not None]
    assert len(known) >= 200
    start, seen = 0, 0
    while True:
        answer = of_run(Run(many, Path("r")), "r", "readings", start)
        assert len(text_of(answer)) <= MOST
        assert answer.readings
        seen += len(answer.readings)
        if not answer.more:
            break
        start += len(answer.readings)
        assert answer.more == {"readings": len(known) - start}
    assert seen == len(known)
    assert of_run(Run(many, Path("r")), "r").more["readings"] == len(known)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["python", "-c", "print()", "app.py"], "runs no file below"),
        (["ls"], "runs no file below"),
        (["python", "../other.py"], "is not below"),
        (["python", "app.py", "--data=/etc/passwd"], "is not below"),
        (["python", "link.py"], "is not below"),
        ([], "runs no file below"),
    ],
)
def test_a_command_outside_of_the_folder_is_refused_and_nothing_runs(
    words: list[str], why: str, tmp_path: Path
) -> None:
    root = project(tmp_path / "p", "print()\n")
    (tmp_path / "other.py").write_text("")
    (root / "link.py").symlink_to(tmp_path / "other.py")
    for call in (Tools(root, 60).profile(words, None), Tools(root, 60).compare(None, command=words)):  # type: ignore[arg-type]
        with pytest.raises(ToolError, match=f"(?s){why}.*fix: |a baseline and a candidate"):
            finished(call)
    with pytest.raises(ToolError, match=r"(?s)budget is spent.*fix: profkit mcp --budget SECONDS"):
        finished(Tools(root, 0.5).profile(["python", "app.py"], None))  # type: ignore[arg-type]
    assert not (root / "reports").exists()


def test_faults_come_with_the_line_that_fixes_them(tmp_path: Path) -> None:
    root = project(tmp_path / "p", "raise SystemExit('no such thing')\n")
    (root / "notes.txt").write_text("no report\n")

    async def work() -> None:
        async with connected(root, "--budget", "60") as client:
            for tool, arguments, said in (
                ("compare", {"command": ["python", "app.py"], "base": "nowhere"}, "no commit 'nowhere'"),
                ("profile", {"command": ["python", "app.py"]}, "no such thing"),
                ("summarize", {"path": "notes.txt"}, "notes.txt"),
                ("summarize", {"path": "../x"}, "fix: profkit mcp FOLDER"),
                ("summarize", {"path": "notes.txt", "part": "all"}, "fix: part: hot_spots"),
                ("compare", {}, "fix: command:"),
                ("doctor", {"backend": "abacus"}, "abacus"),
            ):
                answer = await client.call_tool(tool, arguments)
                assert answer.is_error, (tool, arguments)
                assert said in text_in(answer)

    finished(work())


def test_a_ctrl_c_ends_the_server_and_what_it_runs(tmp_path: Path) -> None:
    wait = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    root = project(tmp_path / "p", wait)
    server = subprocess.Popen(
        [sys.executable, "-m", "profkit", "mcp", str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )
    assert server.stdin is not None
    hello = '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
    call = '{"name":"profile","arguments":{"command":["python","app.py"]}}'
    server.stdin.write(f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{hello}}}\n')
    server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    server.stdin.write(f'{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{call}}}\n')
    server.stdin.flush()
    end = time.monotonic() + 30
    while not (root / "pid").exists() or not (root / "pid").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    server.send_signal(signal.SIGINT)
    assert server.wait(20) == 130
    assert server.stderr is not None
    assert server.stderr.read() == "error: interrupted\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((root / "pid").read_text()), 0)


def test_without_the_package_the_line_that_installs_it_is_said(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; from profkit.cli import main; sys.argv[1:] = ['mcp']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (3, "  fix: pip install 'profkit[mcp]'")
