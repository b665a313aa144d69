"""Cheats are found, and honest kernels are not accused: real processes, one kernel after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

from judging import FILES, evaluator_of, judge_operation

from profkit.kernels.evaluation.evaluator import Evaluator

KERNELS = dict(re.findall(r'@kernel\("([^"]+)"\)\ndef (\w+)', (FILES / "cheats.py").read_text()))
HONEST = ("abs.default", "exp2.default")
ONLY_WHEN_TIMED = ("relu.default", "log.default", "sin.default")


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with evaluator_of("cheats.py", tmp_path_factory.mktemp("logs")) as opened:
        yield opened


@pytest.mark.thorough
@pytest.mark.parametrize("operation", [name for name in KERNELS if name not in HONEST], ids=KERNELS.get)
def test_a_cheat_does_not_pass(evaluator: Evaluator, operation: str) -> None:
    result = judge_operation(evaluator, operation)
    assert result.status in ("incorrect", "cheat"), result
    assert result.reason
    assert result.speedup is None


@pytest.mark.parametrize("operation", ONLY_WHEN_TIMED)
def test_a_kernel_that_is_wrong_only_in_timed_calls_is_called_a_cheat(
    evaluator: Evaluator, operation: str
) -> None:
    result = judge_operation(evaluator, operation)
    assert result.reason is not None
    assert (result.status, result.reason.code == "wrong-in-timed-call") in (
        ("cheat", True),
        ("incorrect", False),  # it was wrong when it was asked again, too
    )


@pytest.mark.parametrize("operation", HONEST)
def test_an_honest_kernel_passes_whatever_it_patches_in_its_own_process(
    evaluator: Evaluator, operation: str
) -> None:
    result = judge_operation(evaluator, operation)
    assert (result.status, result.reason) == ("passed", None)
    assert result.speedup is not None
    assert result.speedup.low < 3
    assert result.verified >= 3


@pytest.mark.thorough
def test_every_cheat_of_the_file_is_tried() -> None:
    assert len(KERNELS) == (FILES / "cheats.py").read_text().count("@kernel(") >= 17
