"""A scripted model against the real evaluation: what it is told of each kind of answer, and what is kept of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.source import make_source_request
from tests.cli_runner import Said, profkit
from tests.generation.model_server import ModelServer, Reply, Request, failed, needs_packages, rate_limited
from tests.spoken import sentences

pytestmark = needs_packages
KEY = "sk-made-up-9c1e7f2b5a"
NO_CODE = "I would clamp it at zero."
UNFINISHED = "```python\nimport torch\n\ndef relu_kernel_impl(x):\n    return torch.where(x > 0,"
NO_PYTHON = "```python\nimport torch\n\ndef relu_kernel_impl(x:\n    return x\n```"
WRONG = "```python\nimport torch\n\ndef relu_kernel_impl(x):\n    return x * (x > 0.5)\n```"
# A kernel that looks for the key wherever it may read, and shows what it has.
SPIES = """```python
import glob
import os

import torch


def relu_kernel_impl(x):
    seen = [str(os.environ)]
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            seen.append(open(path, errors="replace").read())
        except OSError:
            pass
    secrets = [text[text.index("sk-made"):][:30] for text in seen if "sk-made" in text]
    raise RuntimeError(f"secrets: {secrets}")
```"""
RIGHT = "It clamps.\n\n```python\nimport torch\n\n\ndef relu_kernel_impl(x):\n    return torch.clamp(x, min=0)\n```"
SCRIPT: tuple[Reply | str, ...] = (
    rate_limited(0.01),
    NO_CODE,
    failed(500),
    Reply("half of an ans", broken=True),
    Reply(UNFINISHED, ending="length"),
    NO_PYTHON,
    WRONG,
    WRONG,
    SPIES,
    Reply("I cannot help with that.", ending="refused"),
    RIGHT,
)
STATUSES = [
    "no-code",
    "no-code",
    "load-error",
    "incorrect",
    "repeated",
    "incorrect",
    "no-answer",
    "passed",
]


def generate(*words: str, cwd: Path, key: str = KEY, process: bool = False) -> Said:
    keys = {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": ""}
    return profkit("generate", *words, cwd=cwd, env=keys, process=process)


def calls(folder: Path) -> list[str]:
    """A suite of few and small calls, in a file of the folder."""
    one, two = "((T([160, 160], f32),), {})", "((T([64], f32), T([64], f32)), {})"
    lines = ("Operator: aten.relu.default", f"cnt: 2, {one}", f"cnt: 1, {one.replace('160, 160', '64')}")
    lines += ("Operator: aten.add.Tensor", f"cnt: 1, {two}", "Operator: aten.mul.Tensor", f"cnt: 1, {two}")
    (folder / "calls.txt").write_text("\n".join(lines) + "\n")
    return ["--suite", "traced", "--traces", str(folder / "calls.txt"), "--device", "cpu"]


def options(server: ModelServer, folder: Path, operations: str = "relu") -> list[str]:
    return [
        *calls(folder),
        *("--provider", "openai", "--base-url", server.openai_url, "--model", "made-up-1", "--threads", "1"),
        *("--ops", operations, "--budget", "0.2", "--profile-depth", "none", "--run-id", "first"),
    ]


@dataclass(frozen=True)
class Generated:
    """A generation by the whole script."""

    said: Said
    folder: Path
    requests: list[Request]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        (operation,) = self.said.json()["operations"]
        return list(operation["attempts"])

    def feedback(self, number: int) -> str:
        return (self.folder / f"relu/relu_attempt_{number}_feedback.txt").read_text()


FEEDBACK = (
    (1, "The answer has no code block."),
    (2, "cut off"),
    (3, "->    3  def relu_kernel_impl(x:"),
    (4, "times what rounding explains"),
    (4, "speed counts only when all tests pass"),
    (5, "same file as attempt 4"),
    (6, '->   15      raise RuntimeError(f"secrets: {secrets}")'),
    (6, "RuntimeError: secrets: []"),
    (7, "declined"),
    (8, "**Correct: all 2 tests passed.**"),
)


@pytest.mark.thorough
@pytest.mark.torch
def test_each_kind_of_answer_has_its_status_and_its_feedback_and_the_loop_goes_on(tmp_path: Path) -> None:
    """One whole script: it takes long, so that all that it shows is asked here."""
    with ModelServer(SCRIPT) as server:
        # In a process of its own: a key in its environment is what a kernel looks for.
        said = generate(
            *(*options(server, tmp_path), "--max-attempts", "8", "--format", "json"),
            cwd=tmp_path,
            process=True,
        )
    done = Generated(said, tmp_path / "generated_kernels" / "first", server.requests)
    assert [attempt["status"] for attempt in done.attempts] == STATUSES
    assert said.code == 0
    (operation,) = said.json()["operations"]
    assert (operation["best"], operation["stopped"]) == (8, "attempts")
    assert sentences(said.json()) == []
    for number, words in FEEDBACK:
        assert words in done.feedback(number)
    check_requests(done)
    check_secrets(done)
    check_folder(done)


def check_requests(done: Generated) -> None:
    """The model is sent what the feedback files hold; faults of the service cost a retry and no attempt."""
    answered = [request for request in done.requests if request.number not in (0, 2, 3)]
    for number, request in enumerate(answered[1:], 1):
        assert request.prompt == done.feedback(number)
    assert len(done.requests) == len(SCRIPT)
    assert done.said.json()["input_tokens"] == sum(one["input_tokens"] for one in done.attempts) > 1000
    for words in (
        "aten::relu(Tensor self) -> Tensor",
        "`relu_kernel_impl`",
        "`((T([160, 160], f32),), {})`",
        "measured peaks",
    ):
        assert words in done.requests[0].prompt


def check_secrets(done: Generated) -> None:
    """The key is in no file, and no kernel can read it."""
    assert done.requests[0].headers["authorization"] == f"Bearer {KEY}"  # it was there to be found
    files = [path for path in done.folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in done.said.out + done.said.err


def check_folder(done: Generated) -> None:
    """It is a folder of kernels, whose best attempt is taken; resumed with one more attempt it asks once more."""
    where = done.folder.parent.parent
    source = open_source(make_source_request("directory", done.folder))
    assert source.where("relu.default") == str(done.folder / "relu" / "relu_attempt_8.py")
    with ModelServer([RIGHT.replace("It clamps.", "Again.")]) as server:
        options = ("--max-attempts", "9", "--base-url", server.openai_url, "--format", "json")
        said = generate("--resume", str(done.folder), *options, cwd=where)
    (operation,) = said.json()["operations"]
    assert [attempt["status"] for attempt in operation["attempts"]] == [*STATUSES, "repeated"]
    assert len(server.requests) == 1


@pytest.mark.thorough
@pytest.mark.torch
def test_several_operations_are_asked_at_once_and_a_budget_of_tokens_holds(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        name = re.search(r"`(\w+)_kernel_impl`", request.text)
        assert name is not None
        # One kernel is judged while the others are asked for.
        code = f"```python\ndef {name[1]}_kernel_impl(*args, **kwargs):\n    return args[0]\n```"
        return code if name[1] == "add" else NO_CODE

    with ModelServer(script) as server:
        words = options(server, tmp_path, "relu,add")
        said = generate(
            *words, "--max-tokens", "5500", "--answer-tokens", "2000", "--format", "json", cwd=tmp_path
        )
    document = said.json()
    assert said.code == 1
    assert document["input_tokens"] + document["output_tokens"] <= 5500
    assert "budget" in {operation["stopped"] for operation in document["operations"]}
    assert all(
        attempt["status"] != "passed" for each in document["operations"] for attempt in each["attempts"]
    )


@pytest.mark.thorough
@pytest.mark.torch
def test_an_agent_is_asked_by_files_and_its_last_attempt_has_no_profile(tmp_path: Path) -> None:
    agent = tmp_path / "my agent.py"
    agent.write_text(
        "import sys\nprompt = open(sys.argv[1]).read()\nassert 'relu_kernel_impl' in prompt\n"
        f"open(sys.argv[2], 'w').write({RIGHT!r})\n"
    )
    said = generate(
        *("--command", f"python '{agent}' {{prompt}} {{output}}", "--ops", "relu", *calls(tmp_path)),
        *("--budget", "0.2", "--max-attempts", "1", "--format", "json"),
        cwd=tmp_path,
    )
    document = said.json()
    assert said.code == 0, said.err
    (operation,) = document["operations"]
    (attempt,) = operation["attempts"]
    assert (operation["stopped"], attempt["profile"]) == ("attempts", "")
    assert (document["provider"], document["operations"][0]["best"]) == ("command", 1)


def test_a_server_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    with ModelServer([]) as server:
        pass
    said = generate(*options(server, tmp_path), cwd=tmp_path)
    assert said.code == 3
    assert "--base-url" in said.err
    assert not (tmp_path / "generated_kernels" / "first").exists()
