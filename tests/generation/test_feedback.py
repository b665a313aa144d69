"""What a model is told of its kernel: the outcome first, what is wrong with its line, what limits it, what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import EvaluationTest, Gain, Insight, Place, Speedup, TestResult
from profkit.reporting.feedback import JudgedKernel, format_feedback
from tests.spoken import message

CODE = """import torch
import triton


def relu_kernel_impl(x):
    relu_kernel[(4,)](x, y)
    return y
"""
# As Triton 3.4 says it on an H100, with shortened frames.
TRITON = """Traceback (most recent call last):
  File "profkit/kernels/evaluation/worker/server.py", line 137, in _call
    value = self._kernel(*args, **kwargs)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "relu/relu_attempt_1.py", line 6, in relu_kernel_impl
    relu_kernel[(4,)](x, y)
  File "site-packages/triton/compiler/compiler.py", line 80, in make_ir
    return ast_to_ttir(self.fn, self, context=context, options=options, codegen_fns=codegen_fns,
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
triton.compiler.errors.CompilationError: at 8:71:
def relu_kernel(x_ptr, y_ptr, n, cols, stride0, stride1, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(y_ptr + pid, tl.maximum(x, 0.0, q))
                                             ^
NameError('q is not defined')
"""
MEMORY = Insight(
    "small-grid",
    "Launch more blocks",
    "the grid of 4 blocks fills 4 of 132 multiprocessors",
    "Let each program handle less.",
    Place(kernel="relu_kernel", file="somewhere/relu_attempt_1.py", line=6),
    Gain(0.9, "the GPU time", "all multiprocessors work"),
)


def test_of(arguments: str, **fields: object) -> TestResult:
    test = EvaluationTest(arguments, "smoke", "relu.default", "float32", arguments)
    facts = {
        name: message(text) for name, text in fields.items() if name == "reason" and isinstance(text, str)
    }
    return replace(TestResult(test, "passed"), **{**fields, **facts})  # type: ignore[arg-type]


test_of.__test__ = False  # type: ignore[attr-defined]
TIMED = test_of(
    "((T([8], f32),), {})",
    speedup=Speedup(0.5, 0.48, 0.52, "SLOWER", 12),
    seconds=2e-6,
    reference_seconds=1e-6,
    bound_seconds=5e-7,
)


def feedback(*results: TestResult, **fields: object) -> str:
    return format_feedback(replace(JudgedKernel(CODE, "relu_attempt_1.py", results), **fields))  # type: ignore[arg-type]


def test_a_compiler_s_error_is_shown_whole_with_the_line_that_launched_it_once_for_all_tests() -> None:
    reason = "CompilationError: at 8:71: NameError('q is not defined')"
    wrong = {"status": "incorrect", "fault": "raised", "error_type": "CompilationError"}
    results = [test_of(str(n), reason=reason, traceback=TRITON, **wrong) for n in range(5)]
    text = feedback(*results, TIMED)
    assert text.startswith("**Not correct: 1 of 6 tests passed.**")
    assert "`0` and 4 more" in text
    assert "->    6      relu_kernel[(4,)](x, y)" in text
    assert "tl.maximum(x, 0.0, q))\n                                             ^\nNameError" in text
    assert text.count("CompilationError: at 8:71") == 2  # the reason, and the message
    assert "site-packages" not in text


def test_each_kind_of_failure_is_shown_before_a_second_one_of_any() -> None:
    wrong = {"status": "incorrect", "fault": "values", "max_abs_error": 0.5, "allowed_share": 40.0}
    values = [test_of(f"value {n}", reason=f"output 0 is {n}", **wrong) for n in range(9)]
    shape = test_of("shape", status="incorrect", fault="shape", reason="output 0 has shape [2]")
    text = feedback(*values, shape)
    assert text.index("value 0") < text.index("output 0 has shape [2]") < text.index("value 1")
    assert "- 5 more failed." in text
    assert "largest error 0.500, 40.0 times what rounding explains" in text


def test_a_correct_kernel_gets_its_speed_its_limit_and_the_change_that_wins_most() -> None:
    text = feedback(
        TIMED,
        limit=message("latency, 4 of 132 multiprocessors busy"),
        insights=(MEMORY,),
        profiled=TIMED.test.arguments,
    )
    assert "0.500 times as fast as PyTorch (0.480 to 0.520): SLOWER; 2.00 µs, PyTorch 1.00 µs" in text
    assert "the hardware allows 500 ns" in text
    assert "**Launch more blocks**, line 6: `relu_kernel[(4,)](x, y)`: the grid of 4 blocks" in text
    assert "It could save up to 90 % of the GPU time." in text
    assert text.rstrip().endswith("The lowest speed-up is that of `((T([8], f32),), {})`.")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"own_share": 0.0}, "Write the arithmetic in kernels of this file"),
        ({"remarks": (message("the host needs 38 µs"),)}, "- the host needs 38 µs."),
        ({"bound_seconds": 1.95e-6}, "97.5 % of what the hardware allows: there is nothing left to win"),
        (
            {"status": "cheat", "reason": message("wrong in a timed call")},
            "Make it correct on these arguments first",
        ),
        (
            {"status": "load-error", "reason": message("no module named foo")},
            "**It cannot be loaded.** no module",
        ),
        ({"status": "skipped"}, "every test was skipped"),
    ],
)
def test_the_last_line_says_what_to_do(fields: dict[str, object], said: str) -> None:
    assert said in feedback(replace(TIMED, **fields))  # type: ignore[arg-type]


NVCC = """Traceback (most recent call last):
  File "/tmp/profkit-kernels-x1/relu_attempt_1.py", line 6, in relu_kernel_impl
    relu_kernel[(4,)](x, y)
RuntimeError: Error building extension 'relu': [1/2] c++ -o main.o -c /tmp/torch_extensions/relu/main.cpp
/tmp/torch_extensions/relu/main.cpp:3:5: error: 'x' was not declared; half / of / x, see https://a.example/b/c
"""


@pytest.mark.parametrize(
    "kernel",
    [
        JudgedKernel(
            CODE, "relu_attempt_1.py", (test_of("a", status="load-error", reason="/tmp/p-x/relu.py: no"),)
        ),
        JudgedKernel(
            CODE, "relu_attempt_1.py", problem=message("/home/somebody/k/relu.py does not define relu")
        ),
        JudgedKernel(
            CODE,
            "relu_attempt_1.py",
            (
                test_of(
                    "a",
                    status="incorrect",
                    reason="RuntimeError: in /tmp/p-x/relu.py",
                    traceback=NVCC,
                    last_line="/tmp/p-x/relu.py:3: warning",
                ),
            ),
        ),
        JudgedKernel(
            CODE,
            "relu_attempt_1.py",
            (TIMED,),
            limit=message("the latency of /tmp/p-x/relu.py"),
            insights=(replace(MEMORY, evidence="the grid of /tmp/p-x/relu.py"),),
        ),
    ],
)
def test_a_model_is_told_the_names_of_files_and_no_folder_of_this_machine(kernel: JudgedKernel) -> None:
    told = format_feedback(kernel)
    assert "relu" in told
    assert not {"tmp", "home", "somebody", "p-x"} & set(told.replace("/", " ").split())
    if "c++" in told:
        assert "main.cpp:3:5: error: 'x' was not declared; half / of / x, see https://a.example/b/c" in told
