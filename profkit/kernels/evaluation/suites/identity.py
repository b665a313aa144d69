"""What makes two tests the same test."""

from __future__ import annotations

import hashlib
import json

from profkit.core.types import EvaluationTest
from profkit.core.types.readings import Json

ID_DIGITS = 12


def make_test(
    suite: str,
    operation: str,
    dtype: str,
    arguments: str,
    source: Json,
    *,
    calls: int = 0,
    timed: bool = True,
) -> EvaluationTest:
    """The test, with an id that follows from all that tells it apart from other tests."""
    what = json.dumps([suite, operation, dtype, arguments, source], sort_keys=True)
    digits = hashlib.sha256(what.encode()).hexdigest()[:ID_DIGITS]
    return EvaluationTest(digits, suite, operation, dtype, arguments, source, calls, timed)
