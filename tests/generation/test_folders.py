"""Folders that somebody else made or changed, a kernel for example: none decides what is read or written elsewhere."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from profkit.core.errors import Interrupted, MachineError, ProfkitError, Silent, UnreadableReport, UsageError
from profkit.core.types import GenerationLimits
from profkit.execution.journal import open_journal
from profkit.generation import run as runs
from profkit.generation.judging import AttemptJudge
from profkit.generation.loop import ANSWER, LoopTools, OperationLoop
from profkit.generation.model import Answer, BudgetSpent, ChatMessage, Model, ModelOptions
from profkit.generation.prompt import KernelTask
from profkit.generation.request import (
    FILE,
    FORMAT,
    AskedModel,
    GenerationOptions,
    GenerationRequest,
    read_generation,
)
from profkit.generation.run import generate_kernels, resume_generation
from profkit.kernels.campaign import Campaign
from profkit.kernels.evaluation.request import JudgeSettings
from tests.generation.documents import failed
from tests.journals import store_generation

NAME, SECRET = "relu.default", "root:x:0:0"
TASK = KernelTask(NAME, "relu_kernel_impl", "pytorch", "aten::relu(Tensor self) -> Tensor", (), ())
Entries = list[dict[str, Any]]


class Listener(Model):
    """A model that hears what it is asked, and gives no answer."""

    provider = name = "made-up"

    def __init__(self) -> None:
        self.heard = ""

    def ask(self, messages: Sequence[ChatMessage], report: Callable[[str], None] = lambda _: None) -> Answer:
        self.heard = "\n".join(message.text for message in messages)
        raise BudgetSpent

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A generation with two attempts, beside a file that is none of its business."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "run"
    limits = GenerationLimits(5)
    (folder / "relu").mkdir(parents=True)
    made = []
    for number in (1, 2):
        stem = f"relu/relu_attempt_{number}"
        (folder / f"{stem}.py").write_text(f"# {number}")
        (folder / f"{stem}_feedback.txt").write_text(f"feedback {number}")
        made.append(failed(number, file=f"{stem}.py", feedback=f"{stem}_feedback.txt"))
    request = GenerationRequest(JudgeSettings(), folder, "pytorch", limits=limits)
    store_generation(request, AskedModel("made-up", "m"), {NAME: made}, {NAME: "relu"})
    return folder


def change(folder: Path, edit: Callable[[Entries], object]) -> None:
    """Rewrite the journal: its header, its description, two attempts, its seconds."""
    entries = [json.loads(line) for line in (folder / FILE).read_text().splitlines()]
    edit(entries)
    (folder / FILE).write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def heard(folder: Path) -> str:
    """What the model is asked when the generation goes on."""
    (request, _, _), model = read_generation(folder), Listener()
    journal = open_journal(folder, FORMAT, {})
    campaign = Campaign(FORMAT, journal, Silent(), "")
    tools = LoopTools(
        request, model, cast("AttemptJudge", None), campaign, threading.Event(), lambda *_: None, print
    )
    try:
        OperationLoop(TASK, "relu", tools).run()
    finally:
        journal.close()
    return model.heard


@pytest.mark.parametrize("field", ["file", "feedback", "evaluation", "profile"])
@pytest.mark.parametrize("path", ["../secret.txt", "relu/../../secret.txt", "/etc/passwd", "relu//x", "a\0b"])
def test_a_journal_names_no_file_outside_its_folder(folder: Path, field: str, path: str) -> None:
    change(folder, lambda entries: entries[3]["outcome"].update({field: path}))
    with pytest.raises(UnreadableReport, match=r"is no path below"):
        heard(folder)


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp/elsewhere", "..", "", "a/b", "a\\b"])
def test_a_journal_names_no_folder_outside_its_own(folder: Path, name: str) -> None:
    change(folder, lambda entries: entries[1]["note"].update(folders={NAME: "relu", "add.Tensor": name}))
    with pytest.raises(UnreadableReport, match="is no path below"):
        read_generation(folder)[2]


@pytest.mark.parametrize("make", [lambda file: file.symlink_to("../../secret.txt"), os.mkfifo])
def test_a_link_or_a_pipe_in_the_place_of_a_file_is_not_read(
    folder: Path, make: Callable[[Path], None]
) -> None:
    file = folder / "relu" / "relu_attempt_2_feedback.txt"
    file.unlink()
    make(file)
    with pytest.raises(MachineError, match="is not a file of this generation any more"):
        heard(folder)


def test_no_operation_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    (folder / "relu").rename(tmp_path / "elsewhere")
    (folder / "relu").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MachineError, match="is a link: kernels would be written elsewhere"):
        heard(folder)


@pytest.mark.parametrize("number", [0, -1, 7, 10**18])
def test_an_attempt_that_is_not_the_next_one_is_made_again(folder: Path, number: int) -> None:
    change(folder, lambda entries: entries[3]["outcome"].update(number=number))
    assert [attempt.number for attempt in read_generation(folder)[2].operations[0].attempts] == [1]
    assert "feedback 1" in heard(folder)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("language", "klingon", "--language 'klingon' is none of"),
        ("profile_depth", "deeper", "--profile-depth 'deeper' is none of"),
        ("at_once", 0, "--at-once 0 is not from 1 to"),
        ("at_once", 10**9, "--at-once 1000000000 is not from 1 to"),
    ],
)
def test_settings_that_no_option_takes_are_no_settings(
    folder: Path, field: str, value: object, why: str
) -> None:
    change(folder, lambda entries: entries[0]["request"].update({field: value}))
    with pytest.raises(ProfkitError, match=f"line 1: {why}"):
        read_generation(folder)


# ---------------------------------------------------------------- what runs, and who gets a key


class Reached(Exception):
    """The model would be asked now."""


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_model(*_: object) -> None:
        raise Reached

    monkeypatch.setattr(runs, "make_model", make_model)


def folder_with(path: Path, model: AskedModel, **settings: str) -> Path:
    request = GenerationRequest(replace(JudgeSettings(), **settings), path, "cpp")  # type: ignore[arg-type]
    store_generation(request, model, {}, {})
    return path


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("model", "named", "fix"),
    [
        (AskedModel("command", "x", command="sh steal"), ModelOptions(command="sh steal"), "--command 'sh steal'"),
        (
            AskedModel("openai", "m", base_url="http://far.example/v1"),
            ModelOptions(base_url="http://near.example/v1"),
            "--base-url http://far.example/v1",
        ),
        (AskedModel("openai", "m", key_env="AWS_SECRET"), ModelOptions(key_env="MINE"), "--key-env AWS_SECRET"),
    ],
)  # fmt: skip
def test_what_would_run_or_get_a_key_is_named_again(
    model: AskedModel, named: ModelOptions, fix: str, tmp_path: Path
) -> None:
    folder_with(tmp_path, model)
    with pytest.raises(UsageError) as refused:
        resume_generation(tmp_path, {}, ModelOptions(), Silent())
    assert refused.value.fix == f"profkit generate --resume {tmp_path} {fix}"
    with pytest.raises(Reached):
        resume_generation(tmp_path, {}, named, Silent())


@pytest.mark.usefixtures("no_model")
def test_a_file_of_tests_is_named_again(tmp_path: Path) -> None:
    folder_with(tmp_path, AskedModel("openai", "m"), suite="mine.py", suite_path="/somewhere/mine.py")
    with pytest.raises(UsageError, match=r"code that would run here: /somewhere/mine\.py") as refused:
        resume_generation(tmp_path, {}, ModelOptions(), Silent())
    assert refused.value.fix == f"profkit generate --resume {tmp_path} --suite /somewhere/mine.py"
    with pytest.raises(Reached):
        resume_generation(tmp_path, {}, ModelOptions(), Silent(), [("--suite", "/somewhere/mine.py")])


@pytest.mark.usefixtures("no_model")
def test_a_server_on_this_machine_needs_not_to_be_named_again(tmp_path: Path) -> None:
    near = folder_with(tmp_path, AskedModel("openai", "m", base_url="http://localhost:8000/v1"))
    with pytest.raises(Reached):
        resume_generation(near, {}, ModelOptions(), Silent())


@pytest.mark.parametrize("answered", [True, False])
def test_a_folder_is_left_where_an_answer_was_paid_for(
    answered: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(request: GenerationRequest, *_: object) -> None:
        if answered:
            (request.folder / "relu").mkdir()
            (request.folder / "relu" / f"relu_attempt_1{ANSWER}").write_text("an answer")
        raise Interrupted(f"interrupted; the attempts are in {request.folder}", "profkit generate --resume")

    monkeypatch.setattr(runs, "run_generation", run)
    options = GenerationOptions(output=tmp_path, run_id="first")
    with pytest.raises(Interrupted) as raised:
        generate_kernels(
            JudgeSettings(), options, ModelOptions(command="true {prompt}"), ("profkit",), Silent()
        )
    assert ("--resume" in str(raised.value.fix)) is answered
    assert (tmp_path / "first").is_dir() is answered
