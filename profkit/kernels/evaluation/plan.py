"""What an evaluation would test, and how long that takes, before any of it is done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from profkit.analysis.evaluation.scores import elements_of
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.formatting import plural
from profkit.core.progress import Progress
from profkit.kernels.evaluation.request import EvaluationRequest
from profkit.kernels.evaluation.run import list_tests
from profkit.kernels.sweep.plan import format_duration

SCHEMA = "profkit.evaluation-plan/1"
START_SECONDS = 10.0  # torch is loaded three times, and the device measured
TEST_SECONDS = 0.02  # of a test of some elements: truth in float64, and two calls
# of each element of a test's arguments: truth in float64, and as many pairs as are needed
ELEMENT_SECONDS = 2.5e-7
COMPILE_SECONDS = 6.0  # of torch.compile's first call of one shape
TIMED_SHARE = 1.3  # of the budget: arguments are written and outputs verified beside it


def plan_evaluation(request: EvaluationRequest, progress: Progress) -> dict[str, Any]:
    """The plan as plain data; `seconds` is an estimate. No kernel is run: the judge alone lists the tests."""
    with TemporaryFolder() as logs:
        tests, about = list_tests(request, Path(logs), progress)
    settings = request.settings
    timed = 0 if settings.correctness_only else sum(test.timed for test in tests)
    elements = sum(elements_of(test.arguments) or 0 for test in tests)
    seconds = START_SECONDS + len(tests) * TEST_SECONDS + elements * ELEMENT_SECONDS
    seconds += timed * settings.timing.budget * TIMED_SHARE
    if settings.compiled:
        seconds += timed * (COMPILE_SECONDS + settings.timing.budget * TIMED_SHARE)
    operations = Counter(test.operation for test in tests)
    return {
        "schema": SCHEMA,
        "suite": settings.suite,
        "backend": request.backend,
        "kernels": settings.source.names,
        "device": about["device"],
        "operations": dict(operations),
        "without_kernel": about.get("without_kernel", []),
        "tests": len(tests),
        "timed": timed,
        "budget": settings.timing.budget,
        "compiled": settings.compiled,
        "seconds": round(seconds, 1),
    }


def plan_text(plan: dict[str, Any]) -> str:
    """The plan for people."""
    against = ", and as long against torch.compile" if plan["compiled"] else ""
    lines = [
        f"{plural(plan['tests'], 'test')} of {plural(len(plan['operations']), 'operation')} of the suite "
        f"{plan['suite']}, kernels of {plan['kernels'] or plan['backend']}, on {plan['device']}",
        f"{plan['timed']} of them are timed, {plan['budget']:g} s each at most{against}",
        f"at most {format_duration(plan['seconds'])}, where nothing else runs; less where times are steady",
    ]
    if missing := plan["without_kernel"]:
        shown = ", ".join(missing[:10]) + (", ..." if len(missing) > 10 else "")
        lines.append(f"{plural(len(missing), 'operation')} of the suite have no kernel there: {shown}")
    names = [f"  {name}  {count}" for name, count in plan["operations"].items()]
    return "\n".join([*lines, "", "tests by operation:", *names])
