"""A generation's folder: its document, the field's files, and what `evaluate --backend directory` takes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profkit.core.errors import MachineError
from profkit.core.types import GenerationDocument
from profkit.generation.run import write_generation
from profkit.kernels.evaluation.sources.names import choose_file
from profkit.kernels.generation_document import (
    FILE,
    is_generation,
)
from tests.generation.documents import correct, every_way, failed, generation, operation


def with_kernels(folder: Path, document: GenerationDocument) -> Path:
    """A generation's folder as the loop leaves it: kernels, feedback, evaluations, logs and answers."""
    for each in document.operations:
        (folder / each.folder).mkdir(parents=True)
        for attempt in each.attempts:
            if attempt.file:
                code = f"def {each.folder}_kernel_impl(*args):\n    return {attempt.number}\n"
                (folder / attempt.file).write_text(code)
            if attempt.feedback:
                (folder / attempt.feedback).write_text(f"attempt {attempt.number}: {attempt.status}\n")
            if attempt.evaluation:
                (folder / attempt.evaluation).mkdir()
                (folder / attempt.evaluation / "other.py").write_text("1 / 0\n")
    (folder / "logs").mkdir()
    (folder / "logs" / "1.json").write_text("{}")
    write_generation(folder, document)
    return folder


def test_a_generation_is_known_by_its_folder_and_its_file(tmp_path: Path) -> None:
    write_generation(tmp_path, every_way())
    assert is_generation(tmp_path)
    assert is_generation(tmp_path / FILE)


def test_the_rows_of_a_summary_are_the_fields_and_name_what_is_kept(tmp_path: Path) -> None:
    write_generation(tmp_path, every_way())
    rows = json.loads((tmp_path / "relu" / "relu_kernel_gen_summary.json").read_text())
    assert list(rows[0]) == [
        "attempt",
        "kernel_file",
        "compilation_error",
        "overall_speedup",
        "correctness_score",
        "is_correct",
        "kept",
        "speedup_low",
        "speedup_high",
        "speedup_word",
    ]
    assert [row["is_correct"] for row in rows] == [False, True, True, True, False]
    assert [row["kept"] for row in rows] == [False, False, True, False, False]
    assert rows[0]["compilation_error"].startswith("line 7")
    assert rows[1]["compilation_error"] is None
    assert rows[2]["overall_speedup"] == 1.64
    assert rows[0]["overall_speedup"] is None
    rows = json.loads((tmp_path / "_softmax" / "_softmax_kernel_gen_summary.json").read_text())
    assert rows[0]["kernel_file"] == ""
    assert rows[2]["correctness_score"] == 0.5


def test_the_readme_says_what_was_asked_what_came_of_it_and_how_to_go_on(tmp_path: Path) -> None:
    write_generation(tmp_path, every_way())
    text = (tmp_path / "README.md").read_text()
    assert "1 faster than PyTorch; 14 attempts" in text
    asked = text[text.index("## What was asked") : text.index("## How to go on")]
    for each in every_way().operations:
        assert each.operation in asked
    assert "    profkit evaluate --suite smoke " in text
    assert f"--backend directory --kernels {tmp_path}" in text
    assert f"    profkit generate --resume {tmp_path}" in text
    for line in text[text.index("## Files") :].splitlines()[2:]:
        for name in line.partition("`: ")[0].removeprefix("- `").split(", "):
            assert name.startswith("OP/") or (tmp_path / name).is_file(), name


def test_the_texts_say_what_is_kept_what_was_spent_and_how_to_go_on(tmp_path: Path) -> None:
    write_generation(tmp_path, every_way())
    summary = (tmp_path / "OVERALL_SUMMARY.txt").read_text()
    assert "1 faster than PyTorch; 14 attempts, 30,800 tokens, 4.1 min." in summary
    assert "relu.default      attempt 3, relu_attempt_3.py, 1.64 x (1.59-1.69, FASTER)" in summary
    metadata = dict(
        line.split(": ", 1) for line in (tmp_path / "mul" / "metadata.txt").read_text().splitlines()
    )
    assert metadata["operation"] == "mul.Tensor"
    assert metadata["kept"] == "none"
    assert metadata["function"] == "mul_kernel_impl"
    assert metadata["stopped"] == "interrupted"


def test_a_disk_that_takes_no_more_is_told_with_the_line_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "relu").write_text("a file where the operation's folder should be")
    with pytest.raises(MachineError, match="cannot write") as raised:
        write_generation(tmp_path, generation(operation("relu.default", correct(1, 1.5))))
    assert raised.value.fix is not None
    assert "profkit generate --resume" in raised.value.fix


# ---------------------------------------------------------------- evaluate --backend directory


def test_an_evaluation_takes_the_kept_kernel_and_not_the_one_that_chance_made_fastest(tmp_path: Path) -> None:
    folder = with_kernels(tmp_path / "run", every_way())
    # attempt 4 measured 1.67 x, which is not surely faster
    assert choose_file(folder / "relu").name == "relu_attempt_3.py"
    assert choose_file(folder / "_softmax").name == "_softmax_attempt_5.py"


@pytest.mark.torch
def test_an_operation_of_which_no_kernel_was_made_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from profkit.kernels.evaluation.sources.files import open_source
    from profkit.kernels.evaluation.sources.names import LoadError
    from profkit.kernels.evaluation.sources.source import make_source_request

    none = operation("abs.default", failed(1, "no-code", tests=0))
    document = generation(none, operation("relu.default", correct(1, 1.5)))
    source = open_source(make_source_request("directory", with_kernels(tmp_path / "run", document)))
    assert source.operations() == ("abs.default", "relu.default")
    with pytest.raises(LoadError, match="has no kernel"):
        source.load("abs.default")
