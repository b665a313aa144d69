"""Evaluate kernels from users' own files and programs: is a kernel right, and is it faster than PyTorch?

`kernel` registers one in a file for `profkit evaluate FILE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profkit.evaluation.functions import cleanup_memory_and_gpu as cleanup_memory_and_gpu
    from profkit.evaluation.functions import compute_errors as compute_errors
    from profkit.evaluation.functions import cpu_bench as cpu_bench
    from profkit.evaluation.functions import deserialize_args as deserialize_args
    from profkit.evaluation.functions import deserialize_tensor as deserialize_tensor
    from profkit.evaluation.functions import serialize_args as serialize_args
    from profkit.evaluation.functions import uses_cuda_stream as uses_cuda_stream
    from profkit.evaluation.judging import LLMBackend as LLMBackend
    from profkit.evaluation.judging import MultiprocessingEvaluator as MultiprocessingEvaluator
    from profkit.evaluation.judging import eval_correctness_test as eval_correctness_test
    from profkit.evaluation.judging import eval_one_op as eval_one_op
    from profkit.evaluation.judging import eval_performance as eval_performance
    from profkit.evaluation.places import CodeEvaluator as CodeEvaluator
    from profkit.evaluation.places import EvaluatorConfig as EvaluatorConfig
    from profkit.evaluation.records import CorrectnessTestResult as CorrectnessTestResult
    from profkit.evaluation.records import EvalResult as EvalResult
    from profkit.evaluation.records import FeedbackInfo as FeedbackInfo
    from profkit.evaluation.records import PerformanceTestResult as PerformanceTestResult
    from profkit.evaluation.records import prepare_results_data as prepare_results_data
    from profkit.evaluation.suites import open_backend as open_backend
    from profkit.evaluation.suites import open_suite as open_suite
    from profkit.kernels.evaluation.sources.files import (
        compile_kernel_from_string as compile_kernel_from_string,
    )
    from profkit.kernels.evaluation.sources.files import kernel as kernel
    from profkit.kernels.evaluation.sources.names import LoadError as LoadError
    from profkit.kernels.evaluation.suites.op_tests import OpTest as OpTest
    from profkit.kernels.evaluation.suites.op_tests import Test as Test
    from profkit.kernels.evaluation.suites.suite import Skip as Skip

_NAMES = {
    "profkit.evaluation.functions": "cleanup_memory_and_gpu compute_errors cpu_bench deserialize_args "
    "deserialize_tensor serialize_args uses_cuda_stream",
    "profkit.evaluation.judging": "LLMBackend MultiprocessingEvaluator eval_correctness_test eval_one_op "
    "eval_performance",
    "profkit.evaluation.places": "CodeEvaluator EvaluatorConfig",
    "profkit.evaluation.records": "CorrectnessTestResult EvalResult FeedbackInfo PerformanceTestResult "
    "prepare_results_data",
    "profkit.evaluation.suites": "open_backend open_suite",
    "profkit.kernels.evaluation.sources.files": "compile_kernel_from_string kernel",
    "profkit.kernels.evaluation.sources.names": "LoadError",
    "profkit.kernels.evaluation.suites.op_tests": "OpTest Test",
    "profkit.kernels.evaluation.suites.suite": "Skip",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
# What the guides call some of them.
_GUIDES = {
    "BackendBenchConfig": "EvaluatorConfig",
    "_deserialize_tensor": "deserialize_tensor",
    "_prepare_results_data": "prepare_results_data",
}


def __getattr__(name: str) -> Any:
    """Load on first use what a user's file imports."""
    own = _GUIDES.get(name, name)
    if own not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[own]), own)
