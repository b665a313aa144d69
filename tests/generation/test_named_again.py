"""A folder of somebody else's chooses no program that runs, no tests that run, and no host that gets a key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.core.progress import Silent
from profkit.generation import generate
from profkit.generation.generate import NamedAgain, resume_generation
from profkit.generation.journal import AskedModel
from profkit.generation.request import GenerationRequest
from profkit.kernels.evaluation.request import JudgeSettings
from tests.journals import store_generation


def folder_with(path: Path, model: AskedModel, **settings: str) -> Path:
    request = GenerationRequest(replace(JudgeSettings(), **settings), path, "cpp")  # type: ignore[arg-type]
    store_generation(request, model, {}, {})
    return path


class Reached(Exception):
    """The model would be asked now."""


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_client(*_: object) -> None:
        raise Reached

    monkeypatch.setattr(generate, "make_client", make_client)


@pytest.mark.parametrize(
    ("model", "named", "fix"),
    [
        (
            AskedModel("command", "x", command="sh steal"),
            NamedAgain(command="sh steal"),
            "--command 'sh steal'",
        ),
        (
            AskedModel("openai", "m", base_url="http://far.example/v1"),
            NamedAgain(base_url="http://near.example/v1"),
            "--base-url http://far.example/v1",
        ),
        (AskedModel("openai", "m", key_env="AWS_SECRET"), NamedAgain(key_env="MINE"), "--key-env AWS_SECRET"),
    ],
)
def test_what_would_run_or_get_a_key_is_named_again(
    model: AskedModel, named: NamedAgain, fix: str, tmp_path: Path
) -> None:
    folder = folder_with(tmp_path, model)
    with pytest.raises(UsageError) as refused:
        resume_generation(folder, {}, NamedAgain(), Silent())
    assert refused.value.fix == f"profkit generate --resume {tmp_path} {fix}"
    with pytest.raises(Reached):
        resume_generation(folder, {}, named, Silent())


def test_a_file_of_tests_is_named_again(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, AskedModel("openai", "m"), suite_path="/somewhere/tests.py")
    with pytest.raises(UsageError, match=r"code that would run here: /somewhere/tests\.py"):
        resume_generation(folder, {}, NamedAgain(), Silent())


def test_a_server_on_this_machine_needs_no_name(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, AskedModel("openai", "m", base_url="http://localhost:8000/v1"))
    with pytest.raises(Reached):
        resume_generation(folder, {}, NamedAgain(), Silent())
