"""What follows from the tests of an evaluation: operations, scores, fast_p, whole-model speed-up. Pure functions."""

from profkit.analysis.evaluation.operations import (
    FAILED,
    CountedTest,
    MeanSpeedup,
    OperationResult,
    counted_tests,
    elements_of,
    gap_closed,
    is_timed_well,
    log_interval,
    mean_speedup,
    operation_results,
    speed_word,
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
    "elements_of",
    "fast_p",
    "fast_p_curve",
    "gap_closed",
    "is_timed_well",
    "log_interval",
    "mean_speedup",
    "model_speedup",
    "operation_results",
    "scores_of",
    "speed_word",
    "status_counts",
]
