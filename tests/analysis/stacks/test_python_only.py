"""Native time is charged to the Python function that called it."""

from __future__ import annotations

from profkit.analysis.stacks.merge import python_functions
from profkit.core.types import Frame, Stacks

MAIN, STEP = Frame("main", "python", "a.py"), Frame("step", "python", "a.py")
EVAL, GEMM = Frame("_PyEval", "libpython.so"), Frame("sgemm", "libblas.so")


def test_native_callees_are_charged_to_the_innermost_python_function() -> None:
    stacks = Stacks(
        "cycles",
        "s",
        {(EVAL, MAIN, EVAL, STEP, GEMM): 3.0, (EVAL, MAIN, EVAL): 1.0, (GEMM,): 2.0},
    )
    found = python_functions(stacks)
    assert found is not None
    assert {h.function: (h.own, h.total) for h in found.hotspots} == {
        "main": (1.0, 4.0),
        "step": (3.0, 3.0),
        "[no Python frame]": (2.0, 2.0),
    }


def test_a_trace_without_python_frames_has_no_python_view() -> None:
    assert python_functions(Stacks("cycles", "s", {(EVAL, GEMM): 1.0})) is None
