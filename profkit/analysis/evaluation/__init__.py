"""What follows from the tests of an evaluation: operations, scores, fast_p, whole-model speed-up. Pure functions."""

from profkit.analysis.evaluation.operations import (
    FAILED,
    CountedTest,
    OperationResult,
    counted_tests,
    elements_of,
    gap_closed,
    is_timed_well,
    operation_results,
)
from profkit.analysis.evaluation.scores import (
    EvaluationScores,
    FastPoint,
    ModelSpeedup,
    fast_p,
    fast_p_curve,
    model_speedup,
    scores_of,
    status_counts,
    surely_faster_than,
)
from profkit.analysis.evaluation.speedups import (
    MeanSpeedup,
    doubted,
    least_speedup,
    mean_of_speedups,
    mean_speedup,
    speed_word,
    summed_interval,
)

__all__ = [
    "FAILED",
    "CountedTest",
    "EvaluationScores",
    "FastPoint",
    "MeanSpeedup",
    "ModelSpeedup",
    "OperationResult",
    "counted_tests",
    "doubted",
    "elements_of",
    "fast_p",
    "fast_p_curve",
    "gap_closed",
    "is_timed_well",
    "least_speedup",
    "mean_of_speedups",
    "mean_speedup",
    "model_speedup",
    "operation_results",
    "scores_of",
    "speed_word",
    "status_counts",
    "summed_interval",
    "surely_faster_than",
]
