"""Where code is evaluated, said in Python: the configuration of the guides, and the evaluator that runs code there."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from profkit.core.errors import UsageError  # noqa: E402
from profkit.evaluation import CodeEvaluator, EvaluatorConfig, OpTest, Test, open_suite  # noqa: E402

pytestmark = pytest.mark.torch
CODE = "def relu_kernel_impl(x):\n    return torch.clamp(x, min=0)\n"


def test_the_guides_configuration_names_this_machine_or_a_gpu_that_is_rented() -> None:
    from profkit.evaluation import BackendBenchConfig

    assert BackendBenchConfig is EvaluatorConfig
    assert BackendBenchConfig().gpu == "T4"
    wanted = {"T4": "T4", "L4": "L4", "A100": "A100-80GB", "H100": "H100", "H200": "H200", "B200": "B200"}
    for gpu, name in wanted.items():
        evaluator = CodeEvaluator(BackendBenchConfig(gpu=gpu))
        assert (evaluator.is_modal, evaluator._gpu) == (True, gpu)
        assert BackendBenchConfig(gpu=gpu).place.title == f"modal:{name}"
    local = CodeEvaluator(BackendBenchConfig(gpu="local"))
    assert (local.is_modal, local._gpu) == (False, "local")
    ssh = CodeEvaluator(EvaluatorConfig("ssh:gpu-box"))
    assert (ssh.is_modal, EvaluatorConfig("ssh:gpu-box").place.kind) == (False, "ssh")


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("V100", "no GPU called 'V100'"),
        ("", "no GPU called ''"),
        ("modal:", "says nothing"),
        ("local,local", "GPU"),
    ],
)
def test_a_gpu_that_is_not_to_be_had_is_refused_with_those_that_are(gpu: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        EvaluatorConfig(gpu)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="kernels are evaluated on Linux")
def test_code_is_evaluated_here_several_at_once_too() -> None:
    evaluator = CodeEvaluator(EvaluatorConfig("local"), budget=0.1)
    (op_test,) = open_suite("smoke", ops="relu", device="cpu")
    wrong = CODE.replace("min=0", "min=1")

    with ThreadPoolExecutor(2) as threads:  # as asyncio.to_thread does
        scores = threads.map(lambda code: evaluator.run_code(op_test, code)[0], (CODE, wrong))
        right, less = scores
    assert right == 1.0
    assert less < 1


@pytest.mark.thorough
def test_tests_of_no_suite_do_not_travel() -> None:
    with pytest.raises(UsageError, match="by the name of their suite"):
        CodeEvaluator(EvaluatorConfig("T4")).run_code(OpTest("relu", [Test(torch.ones(1))]), CODE)
