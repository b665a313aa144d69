"""The Triton kernels, in Triton's interpreter, against float64: odd sizes, several blocks, every dtype."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from workload_cases import ODD, ROOT, case_id

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
]

FIRST = list({workload.name: workload for workload in reversed(ODD)}.values())
CASES = [(workload, "float32") for workload in ODD]
CASES += [(workload, dtype) for workload in FIRST for dtype in ("float16", "bfloat16")]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    """What the interpreter's process said of each case, all in one go."""
    lines = [json.dumps([w.name, vars(w), dtype]) for w, dtype in CASES]
    script = Path(__file__).with_name("interpreted.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)},
    )
    said = done.stdout.splitlines()
    assert len(said) == len(lines), done.stderr[-2000:]
    return dict(zip(lines, said, strict=True))


@pytest.mark.parametrize(("workload", "dtype"), CASES, ids=[f"{case_id(w)}-{dtype}" for w, dtype in CASES])
def test_a_kernel_is_right_within_rounding(verdicts, workload, dtype):
    said = verdicts[json.dumps([workload.name, vars(workload), dtype])]
    if dtype == "bfloat16" and "norm" not in workload.name:
        # Not the kernel's fault, and said instead of a wrong number.
        assert said.startswith("refused: Triton's interpreter cannot multiply bfloat16")
    else:
        assert said.startswith("every row is right")


def test_the_tiles_that_the_kernels_for_hopper_move_are_those_that_were_chosen():
    command = [sys.executable, str(Path(__file__).with_name("tuned.py"))]
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        command, env={**env, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["True", "True"], done.stderr
