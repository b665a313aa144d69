"""Evaluation of kernels, for users' own files and programs: is a kernel right, and is it faster than PyTorch?

`kernel` registers one in a file for `profkit evaluate FILE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profkit.core.types import EvaluationTest as EvaluationTest
    from profkit.evaluation.arguments import deserialize_args as deserialize_args
    from profkit.evaluation.arguments import deserialize_tensor as deserialize_tensor
    from profkit.evaluation.arguments import serialize_args as serialize_args
    from profkit.evaluation.evaluator import MultiprocessingEvaluator as MultiprocessingEvaluator
    from profkit.evaluation.feedback_info import FeedbackInfo as FeedbackInfo
    from profkit.evaluation.judging import eval_correctness_test as eval_correctness_test
    from profkit.evaluation.judging import eval_one_op as eval_one_op
    from profkit.evaluation.judging import eval_performance as eval_performance
    from profkit.evaluation.llm_backend import LLMBackend as LLMBackend
    from profkit.evaluation.measures import cleanup_memory_and_gpu as cleanup_memory_and_gpu
    from profkit.evaluation.measures import compute_errors as compute_errors
    from profkit.evaluation.measures import cpu_bench as cpu_bench
    from profkit.evaluation.records import CorrectnessTestResult as CorrectnessTestResult
    from profkit.evaluation.records import EvalResult as EvalResult
    from profkit.evaluation.records import PerformanceTestResult as PerformanceTestResult
    from profkit.evaluation.records import prepare_results_data as prepare_results_data
    from profkit.evaluation.streams import uses_cuda_stream as uses_cuda_stream
    from profkit.evaluation.suites import open_backend as open_backend
    from profkit.evaluation.suites import open_suite as open_suite
    from profkit.kernels.evaluation.sources.files import (
        compile_kernel_from_string as compile_kernel_from_string,
    )
    from profkit.kernels.evaluation.sources.files import kernel as kernel
    from profkit.kernels.evaluation.sources.source import LoadError as LoadError
    from profkit.kernels.evaluation.suites.suite import Arguments as Arguments
    from profkit.kernels.evaluation.suites.suite import Selection as Selection
    from profkit.kernels.evaluation.suites.suite import Skip as Skip
    from profkit.kernels.evaluation.suites.suite import Suite as Suite
    from profkit.kernels.evaluation.suites.suite import make_test as make_test

_PLACES = {
    "EvaluationTest": "profkit.core.types",
    "deserialize_args": "profkit.evaluation.arguments",
    "serialize_args": "profkit.evaluation.arguments",
    "FeedbackInfo": "profkit.evaluation.feedback_info",
    "LLMBackend": "profkit.evaluation.llm_backend",
    "MultiprocessingEvaluator": "profkit.evaluation.evaluator",
    "eval_correctness_test": "profkit.evaluation.judging",
    "eval_one_op": "profkit.evaluation.judging",
    "eval_performance": "profkit.evaluation.judging",
    "cleanup_memory_and_gpu": "profkit.evaluation.measures",
    "compute_errors": "profkit.evaluation.measures",
    "cpu_bench": "profkit.evaluation.measures",
    "CorrectnessTestResult": "profkit.evaluation.records",
    "EvalResult": "profkit.evaluation.records",
    "PerformanceTestResult": "profkit.evaluation.records",
    "uses_cuda_stream": "profkit.evaluation.streams",
    "deserialize_tensor": "profkit.evaluation.arguments",
    "prepare_results_data": "profkit.evaluation.records",
    "open_backend": "profkit.evaluation.suites",
    "open_suite": "profkit.evaluation.suites",
    "kernel": "profkit.kernels.evaluation.sources.files",
    "LoadError": "profkit.kernels.evaluation.sources.source",
    "compile_kernel_from_string": "profkit.kernels.evaluation.sources.files",
    "make_test": "profkit.kernels.evaluation.suites.suite",
    "Arguments": "profkit.kernels.evaluation.suites.suite",
    "Selection": "profkit.kernels.evaluation.suites.suite",
    "Skip": "profkit.kernels.evaluation.suites.suite",
    "Suite": "profkit.kernels.evaluation.suites.suite",
}


def __getattr__(name: str) -> Any:
    """What a user's file imports: loaded when first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
