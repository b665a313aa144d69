"""A program of the user's instead of a model."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from pathlib import Path

import pytest

from profkit.generation.choose_model import make_model
from profkit.generation.model import Cancelled, ChatMessage, ModelFailed, ModelOptions, ProgramModel
from tests.workload_process import assert_gone

TALK = [
    ChatMessage("system", "Be brief."),
    ChatMessage("user", "Write $HOME."),
    ChatMessage("assistant", "No."),
    ChatMessage("user", "Do."),
]


def agent(code: str, arguments: str = "{prompt} {output}", seconds: float = 60.0) -> ProgramModel:
    """A client of a program in Python, which has its arguments in `a`."""
    code = "import os, sys, subprocess, time; a = sys.argv[1:]; " + code
    return ProgramModel(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {arguments}", seconds)


def test_a_program_reads_the_conversation_and_writes_its_answer_to_a_file() -> None:
    client = agent("print('noise'); open(a[1], 'w').write(open(a[0]).read().upper())")
    answer = client.ask(TALK)
    assert (
        answer.text
        == "# SYSTEM\n\nBE BRIEF.\n\n# USER\n\nWRITE $HOME.\n\n# ASSISTANT\n\nNO.\n\n# USER\n\nDO.\n"
    )
    assert (answer.input_tokens, answer.output_tokens, answer.stop) == (None, None, "end")
    assert (client.provider, client.name) == ("command", Path(sys.executable).name)


def test_without_an_output_in_the_command_its_standard_output_counts() -> None:
    client = agent("print('thinks', file=sys.stderr); print(open(a[0][9:]).read())", "--prompt={prompt}")
    assert client.ask(TALK[1:2]).text == "Write $HOME.\n"


def test_it_has_the_key_of_a_model_and_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "the-admin-key-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "its-own-key-0123456789")
    client = agent(
        "print(os.environ['ANTHROPIC_API_KEY'], os.getcwd(), 'OPENAI_ADMIN_KEY' in os.environ)", "{prompt}"
    )
    make_model(ModelOptions(command="agent {prompt}"))
    assert "ANTHROPIC_API_KEY" not in os.environ
    assert client.ask(TALK).text == f"its-own-key-0123456789 {os.getcwd()} False\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('no tokens left', file=sys.stderr); sys.exit(3)", "exited with 3: no tokens left"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("pass", "wrote nothing to {output}"),
        ("open(a[1], 'w').write(' \\n')", "wrote nothing to {output}"),
        ("open(a[1], 'w').truncate(1 << 25)", "an answer of more than 16 MiB is not a kernel"),
    ],
)
def test_how_a_program_fails_is_said(code: str, message: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        agent(code).ask(TALK)
    assert message in caught.value.message
    assert not caught.value.permanent


DEAF = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)]; "


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("[os.write(1, b'x' * 65536) for _ in iter(int, 1)]", "{prompt}"),
        (
            "f = open(a[1], 'wb')\nfor _ in range(100): f.write(b'x' * (1 << 20)); f.flush()\ntime.sleep(300)",
            "{prompt} {output}",
        ),
    ],
)
def test_a_program_that_writes_without_end_is_killed_while_it_writes(code: str, arguments: str) -> None:
    begin = time.monotonic()
    with pytest.raises(ModelFailed, match="an answer of more than 16 MiB is not a kernel"):
        agent(DEAF + code, arguments, seconds=120.0).ask(TALK)
    assert time.monotonic() - begin < 60


def test_a_program_that_ends_by_no_signal_is_killed_after_its_time() -> None:
    with pytest.raises(ModelFailed, match="ran past its time limit and was ended"):
        agent(DEAF + "time.sleep(300)", seconds=1.0).ask(TALK)


def test_a_program_that_is_not_there_is_a_failure_for_good() -> None:
    with pytest.raises(ModelFailed, match="cannot start no-such-agent") as caught:
        ProgramModel("no-such-agent {prompt}").ask(TALK)
    assert caught.value.permanent


SPAWNS = (
    "p = subprocess.Popen(['sleep', '60'], start_new_session=True);"
    "open(os.environ['PID'], 'w').write(str(p.pid)); time.sleep(60)"
)


def wait_for(path: Path) -> int:
    deadline = time.monotonic() + 10
    while not (path.exists() and path.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return int(path.read_text())


def test_past_its_time_it_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PID", str(tmp_path / "pid"))
    with pytest.raises(ModelFailed, match="ran past its time limit"):
        agent(SPAWNS, seconds=0.5).ask(TALK)
    assert_gone(wait_for(tmp_path / "pid"))


def test_closing_ends_it_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PID", str(tmp_path / "pid"))
    client = agent(SPAWNS)

    def close() -> None:
        wait_for(tmp_path / "pid")
        client.close()

    threading.Thread(target=close).start()
    with pytest.raises(Cancelled):
        client.ask(TALK)
    assert_gone(wait_for(tmp_path / "pid"))
