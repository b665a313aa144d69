"""Every test ends in exactly one status, whatever its kernel does to its process."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from judging import judge_of, judge_operation


def test_each_bad_end_has_its_status_and_the_next_kernel_is_judged(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    with judge_of("crashes.py", tmp_path, timeout=1.0, operations=("ceil",)) as judge:
        found = {
            name: judge_operation(judge, f"{name}.default")
            for name in ("relu", "sigmoid", "tanh", "exp", "sin", "cos", "sign", "sqrt", "ceil", "abs")
        }
    torch.set_num_threads(threads)
    torch.set_grad_enabled(True)
    assert {name: result.status for name, result in found.items()} == {
        "relu": "crashed",
        "sigmoid": "timeout",
        "tanh": "crashed",
        "exp": "incorrect",
        "sin": "incorrect",
        "cos": "out-of-memory",
        "sign": "out-of-memory",
        "sqrt": "crashed",
        "ceil": "load-error",
        "abs": "passed",
    }
    assert found["relu"].reason == "its process died by SIGSEGV"
    assert found["sin"].reason == "ValueError: no such thing: <script>"
    assert (found["sin"].fault, found["sin"].error_type) == ("raised", "ValueError")
    assert 'raise ValueError("no such thing: <script>")' in found["sin"].traceback
    assert found["sqrt"].reason == "its process wrote what is no answer"
    assert "has no kernel for ceil.default" in found["ceil"].reason
