"""The judge on a CUDA device: cheats, honest kernels and bad ends. Needs a GPU; elsewhere nothing of it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from judging import FILES, POSITIVE, evaluator_of, judge_operation

from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.evaluator import Evaluator
from profkit.kernels.evaluation.judging.reference import make_reference
from profkit.kernels.evaluation.request import PairOptions
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.suites.suite import Arguments
from tests.spoken import spoken

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CHEATS = (FILES / "cheats_cuda.py").read_text()
HONEST, GAINS_NOTHING, DISHONEST = (
    dict(re.findall(r'@kernel\("([^"]+)"\)\ndef (\w+)', part))
    for part in re.split(r"# -{60,} .*", CHEATS)[1:]
)
LARGEST_GAIN = 1.3  # that noise may pretend in a short measurement


@dataclass
class OneMatrix:
    """A suite whose tests have one matrix of float32, of 4 MB."""

    name: str = "one argument"

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Normal numbers, or positive ones."""
        x = torch.randn(1024, 1024, generator=torch.Generator().manual_seed(seed))
        return Arguments((x.abs() + 0.1 if test.operation in POSITIVE else x,))


# Two judges do not share a device: these come before the one that the others have together.


def test_each_bad_end_has_its_status_and_the_next_kernel_is_judged(tmp_path: Path) -> None:
    with evaluator_of("crashes_cuda.py", tmp_path, device="cuda:0", timeout=10.0) as evaluator:
        names = ("relu", "sigmoid", "tanh", "exp", "cos", "sqrt", "sin", "abs")
        found = {name: judge_operation(evaluator, f"{name}.default") for name in names}
    print({name: (result.status, result.reason, round(result.spent, 1)) for name, result in found.items()})
    assert {name: result.status for name, result in found.items()} == {
        "relu": "crashed",
        "sigmoid": "timeout",
        "tanh": "crashed",
        "exp": "incorrect",
        "cos": "out-of-memory",
        "sqrt": "crashed",
        "sin": "crashed",
        "abs": "passed",
    }
    assert "ILLEGAL_ADDRESS" in spoken(found["sin"].reason) or "illegal memory access" in spoken(
        found["sin"].reason
    )


def test_pytorch_against_itself_is_the_same(tmp_path: Path) -> None:
    source = SourceRequest("aten")
    with evaluator_of(
        "cheats.py", tmp_path, device="cuda:0", source=source, timing=PairOptions(budget=2.0)
    ) as evaluator:
        evaluator._suite = OneMatrix()
        found = {
            name: judge_operation(evaluator, f"{name}.default") for name in ("relu", "exp", "tanh", "sum")
        }
    words = {name: result.speedup.word if result.speedup else result.reason for name, result in found.items()}
    assert set(words.values()) == {"SAME"}, words


def test_whose_kernels_take_the_time_is_said(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    with evaluator_of(
        "triton_cuda.py", tmp_path, device="cuda:0", timing=PairOptions(budget=0.5)
    ) as evaluator:
        evaluator._suite = OneMatrix()
        found = {name: judge_operation(evaluator, f"{name}.default") for name in ("relu", "abs", "exp")}
    print({name: (result.own_share, result.remarks) for name, result in found.items()})
    assert {result.status for result in found.values()} == {"passed"}
    shares = {name: result.own_share for name, result in found.items()}
    assert shares["relu"] is not None
    assert shares["relu"] > 0.95
    assert shares["abs"] == 0
    assert shares["exp"] is not None
    assert shares["exp"] < 0.5
    assert any("no kernel of its own" in spoken(remark) for remark in found["abs"].remarks)


def test_what_pytorch_leaves_unwritten_is_asked_of_no_kernel() -> None:
    """`nll_loss2d_forward` without a reduction leaves its total weight unwritten on a GPU."""

    def make() -> tuple[tuple[object, ...], dict[str, object], list[torch.Tensor]]:
        log_softmax = torch.randn(2, 3, 2, 2, device="cuda")
        target = torch.randint(0, 3, (2, 2, 2), device="cuda")
        weight = torch.rand(3, device="cuda")
        for _ in range(50):  # freed at once: zeros in what the operation is given next
            torch.zeros(1, device="cuda")
        return (log_softmax, target, weight, 0, -100), {}, [log_softmax, target, weight]

    _, total_weight = make_reference(torch.ops.aten.nll_loss2d_forward.default, make, seed=1).outputs
    assert total_weight.undefined is not None
    assert bool(total_weight.undefined.all())


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    logs = tmp_path_factory.mktemp("logs")
    with evaluator_of("cheats_cuda.py", logs, device="cuda:0", timing=PairOptions(budget=0.5)) as opened:
        opened._suite = OneMatrix()
        yield opened


@pytest.mark.parametrize("operation", HONEST, ids=HONEST.get)
def test_an_honest_kernel_passes_and_is_timed(evaluator: Evaluator, operation: str) -> None:
    result = judge_operation(evaluator, operation)
    assert (result.status, result.reason) == ("passed", None)
    assert result.speedup is not None, result.remarks
    assert result.speedup.low < LARGEST_GAIN
    assert result.verified >= 3


@pytest.mark.parametrize("operation", GAINS_NOTHING, ids=GAINS_NOTHING.get)
def test_a_kernel_that_hides_its_work_gains_nothing(evaluator: Evaluator, operation: str) -> None:
    result = judge_operation(evaluator, operation)
    assert result.status in ("passed", "cheat", "crashed", "incorrect"), result
    assert result.speedup is None or result.speedup.low < LARGEST_GAIN


@pytest.mark.parametrize("operation", DISHONEST, ids=DISHONEST.get)
def test_a_cheat_does_not_pass(evaluator: Evaluator, operation: str) -> None:
    result = judge_operation(evaluator, operation)
    assert result.status in ("incorrect", "cheat", "crashed", "timeout"), result
    assert result.reason
    assert result.speedup is None
