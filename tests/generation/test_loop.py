"""A scripted model against the real evaluation: what it is told of each kind of answer, and what is kept of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import Said, profkit
from tests.generation.model_server import ModelServer, Reply, Request, failed, needs_packages, rate_limited

pytestmark = needs_packages
KEY = "sk-made-up-9c1e7f2b5a"
NO_CODE = "I would clamp it at zero."
UNFINISHED = "```python\nimport torch\n\ndef relu_kernel_impl(x):\n    return torch.where(x > 0,"
NO_PYTHON = "```python\nimport torch\n\ndef relu_kernel_impl(x:\n    return x\n```"
RAISES = """```python
import torch


def relu_kernel_impl(x):
    y = torch.empty_like(x)
    return y.fill_diagonal_(missing)
```"""
WRONG = "```python\nimport torch\n\ndef relu_kernel_impl(x):\n    return x * (x > 0.5)\n```"
# Right as long as it is looked at: the second of two equal shapes gets the first one's result.
CHEATS = """```python
import torch

_kept = {}


def relu_kernel_impl(x):
    key = (tuple(x.shape), tuple(x.stride()))
    if x.numel() > 100_000:
        if key not in _kept:
            _kept[key] = torch.clamp(x, min=0)
        return _kept[key].clone()
    return torch.clamp(x, min=0)
```"""
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
    RAISES,
    WRONG,
    WRONG,
    CHEATS,
    SPIES,
    Reply("I cannot help with that.", ending="refused"),
    RIGHT,
)
STATUSES = [
    "no-code",
    "no-code",
    "load-error",
    "incorrect",
    "incorrect",
    "repeated",
    "incorrect",
    "incorrect",
    "no-answer",
    "passed",
]


def generate(*words: str, cwd: Path, key: str = KEY, process: bool = False) -> Said:
    keys = {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": ""}
    return profkit("generate", *words, cwd=cwd, env=keys, process=process)


def options(server: ModelServer) -> list[str]:
    return [
        *("--provider", "openai", "--base-url", server.openai_url, "--model", "made-up-1", "--device", "cpu"),
        *(
            "--ops",
            "relu",
            "--budget",
            "0.2",
            "--profile-depth",
            "none",
            "--run-id",
            "first",
        ),
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


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    folder = tmp_path_factory.mktemp("generated")
    with ModelServer(SCRIPT) as server:
        # In a process of its own: a key in its environment is what a kernel looks for.
        said = generate(
            *(*options(server), "--max-attempts", "10", "--format", "json"),
            cwd=folder,
            process=True,
        )
        yield Generated(said, folder / "generated_kernels" / "first", server.requests)


def test_each_kind_of_answer_has_its_status_and_the_loop_goes_on(generated: Generated) -> None:
    assert [attempt["status"] for attempt in generated.attempts] == STATUSES
    assert generated.said.code == 0
    (operation,) = generated.said.json()["operations"]
    assert (operation["best"], operation["stopped"]) == (10, "attempts")


def test_the_model_is_sent_what_the_feedback_file_holds(generated: Generated) -> None:
    answered = [request for request in generated.requests if request.number not in (0, 2, 3)]
    for number, request in enumerate(answered[1:], 1):
        assert request.prompt == generated.feedback(number)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "The answer has no code block."),
        (2, "cut off"),
        (3, "->    3  def relu_kernel_impl(x:"),
        (4, "->    6      return y.fill_diagonal_(missing)"),
        (4, "name 'missing' is not defined"),
        (5, "times what rounding explains"),
        (5, "speed counts only when all tests pass"),
        (6, "same file as attempt 5"),
        (9, "declined"),
        (10, "**Correct: all 9 tests passed.**"),
    ],
)
def test_the_feedback_names_what_is_wrong_and_where(generated: Generated, number: int, said: str) -> None:
    assert said in generated.feedback(number)


def test_a_result_that_is_kept_from_another_call_is_found_and_the_model_learns_why(
    generated: Generated,
) -> None:
    assert "relu_attempt_7" in generated.attempts[6]["file"]
    assert "right in a first call, and wrong in a second one with other values" in generated.feedback(7)


def test_faults_of_the_service_cost_a_retry_and_no_attempt(generated: Generated) -> None:
    assert [attempt["call"]["retries"] for attempt in generated.attempts][:3] == [1, 2, 0]
    assert len(generated.requests) == len(SCRIPT)


def test_the_key_is_in_no_file_and_no_kernel_can_read_it(generated: Generated) -> None:
    assert generated.requests[0].headers["authorization"] == f"Bearer {KEY}"  # it was there to be found
    assert "secrets: []" in generated.feedback(8)
    files = [path for path in generated.folder.rglob("*") if path.is_file()]
    assert len(files) > 30
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in generated.said.out + generated.said.err


def test_tokens_are_those_that_the_server_counted(generated: Generated) -> None:
    document = generated.said.json()
    calls = [attempt["call"] for attempt in generated.attempts]
    assert document["input_tokens"] == sum(call["input_tokens"] for call in calls) > 1000


def test_the_prompt_has_the_schema_the_calls_the_device_and_the_name_of_the_function(
    generated: Generated,
) -> None:
    prompt = generated.requests[0].prompt
    for words in (
        "aten::relu(Tensor self) -> Tensor",
        "`relu_kernel_impl`",
        "`((T([1024, 1024], f32),), {})` (timed)",
        "measured peaks",
        "torch.where(torch.le(a, 0), 0, a)",
    ):
        assert words in prompt


def test_the_folder_is_one_of_kernels_whose_best_attempt_is_evaluated(generated: Generated) -> None:
    said = profkit(
        *("evaluate", "--backend", "directory", "--kernels", generated.folder, "--ops", "relu"),
        *("--correctness-only", "--format", "json", "--quiet"),
        cwd=generated.folder.parent.parent,
    )
    assert said.code == 0
    assert {test["status"] for test in said.json()["tests"]} == {"passed"}


def test_a_finished_generation_resumed_with_one_more_attempt_asks_once_more(generated: Generated) -> None:
    before = len(generated.requests)
    with ModelServer([RIGHT.replace("It clamps.", "Again.")]) as server:
        said = generate(
            *("--resume", str(generated.folder), "--max-attempts", "11", "--base-url", server.openai_url),
            *("--format", "json"),
            cwd=generated.folder.parent,
        )
    (operation,) = said.json()["operations"]
    assert [attempt["status"] for attempt in operation["attempts"]] == [*STATUSES, "repeated"]
    assert len(server.requests) == 1
    assert len(generated.requests) == before


def test_several_operations_are_asked_at_once_and_a_budget_of_tokens_holds(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        name = re.search(r"`(\w+)_kernel_impl`", request.text)
        assert name is not None
        # One kernel is judged while the others are asked for.
        code = f"```python\ndef {name[1]}_kernel_impl(*args, **kwargs):\n    return args[0]\n```"
        return code if name[1] == "add" else NO_CODE

    with ModelServer(script) as server:
        words = options(server)
        words[words.index("relu")] = "relu,add,mul"
        said = generate(
            *words, "--max-tokens", "9000", "--answer-tokens", "2000", "--format", "json", cwd=tmp_path
        )
    document = said.json()
    assert said.code == 1
    assert document["input_tokens"] + document["output_tokens"] <= 9000
    assert "budget" in {operation["stopped"] for operation in document["operations"]}
    assert all(
        attempt["status"] != "passed" for each in document["operations"] for attempt in each["attempts"]
    )


def test_until_correct_ends_at_the_first_correct_kernel_of_an_agent_without_a_profile(tmp_path: Path) -> None:
    agent = tmp_path / "my agent.py"
    agent.write_text(
        "import sys\nprompt = open(sys.argv[1]).read()\nassert 'relu_kernel_impl' in prompt\n"
        f"open(sys.argv[2], 'w').write({RIGHT!r})\n"
    )
    said = generate(
        *("--command", f"python '{agent}' {{prompt}} {{output}}", "--ops", "relu", "--device", "cpu"),
        *("--budget", "0.2", "--max-attempts", "3", "--until", "correct", "--format", "json"),
        cwd=tmp_path,
    )
    document = said.json()
    assert said.code == 0, said.err
    (operation,) = document["operations"]
    (attempt,) = operation["attempts"]
    assert (operation["stopped"], attempt["profile"], attempt["profiled_seconds"]) == ("correct", "", 0.0)
    assert (document["provider"], document["operations"][0]["best"]) == ("command", 1)


def test_a_server_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    with ModelServer([]) as server:
        pass
    said = generate(*options(server), cwd=tmp_path)
    assert said.code == 3
    assert "--base-url" in said.err
    assert not (tmp_path / "generated_kernels" / "first").exists()
