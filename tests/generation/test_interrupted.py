"""What a generation leaves that ends before its first attempt is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import Interrupted
from profkit.core.progress import Silent
from profkit.generation import generate
from profkit.generation.clients.registry import ClientOptions
from profkit.generation.generate import ANSWERS, generate_kernels
from profkit.generation.request import GenerationOptions, GenerationRequest


def interrupted(monkeypatch: pytest.MonkeyPatch, output: Path, *, answered: bool) -> str:
    """What a Ctrl-C before the first attempt is done says."""

    def run(request: GenerationRequest, *_: object) -> None:
        if answered:
            (request.folder / ANSWERS).mkdir()
            (request.folder / ANSWERS / "1.json").write_text("{}")
        raise Interrupted(f"interrupted; the attempts are in {request.folder}", "profkit generate --resume")

    monkeypatch.setattr(generate, "_run", run)
    options = GenerationOptions(ops="relu", device="cpu", output=output, run_id="first")
    with pytest.raises(Interrupted) as raised:
        generate_kernels(options, ClientOptions(command="true {prompt}"), ("profkit",), Silent())
    return f"{raised.value.message} {raised.value.fix}"


def test_an_answer_that_was_paid_for_is_kept_though_its_kernel_was_not_tested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "--resume" in interrupted(monkeypatch, tmp_path, answered=True)
    assert (tmp_path / "first").is_dir()


def test_before_the_first_answer_nothing_is_left_and_nothing_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = interrupted(monkeypatch, tmp_path, answered=False)
    assert "first answer" in said
    assert "--resume" not in said
    assert not (tmp_path / "first").exists()
