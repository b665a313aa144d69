"""What Triton did in a workload's process is found in Triton's own objects, and finding it breaks nothing."""

from __future__ import annotations

import textwrap

import pytest

from tests.runtime.region.test_region import Run
from tests.runtime.region.test_region import workload as workload

# A kernel of Triton's own class, in the interpreter and with times that are made up: the second configuration is best.
TUNED = """
    import triton, triton.language as tl, torch
    from triton import Config

    times = {}

    def timed(call, quantiles):
        call()
        return times["next"].pop(0)

    @triton.autotune([Config({"B": 16}, num_warps=2), Config({"B": 32}, num_stages=2), Config({"B": 64})], key=["n"],
                     do_bench=timed)
    @triton.jit
    def doubled(x, y, n, B: tl.constexpr):
        at = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

    def call(n):
        times["next"] = [[3.0, 3.0, 3.0], [1.0, 1.0, 1.0], [float("inf")] * 3]
        x = torch.ones(n)
        y = torch.empty(n)
        doubled[lambda chosen: (triton.cdiv(n, chosen["B"]),)](x, y, n)
        assert y.sum() == 2 * n
"""


def tuned(code: str) -> str:
    return textwrap.dedent(TUNED) + textwrap.dedent(code)


def test_a_tuned_kernel_is_told_with_its_key_its_choice_and_its_seconds(workload: Run) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    done = workload(
        tuned("""
        with profkit.region("a"):
            call(96)
            call(40)
        """),
        TRITON_INTERPRET="1",
    )
    assert done.code == 0, done.err
    work = done.record.triton
    assert work is not None, done.record.notes
    first, last = work.tunings
    assert (last.kernel, last.module) == ("doubled", "__main__")
    assert last.best == "B 32, 4 warps, 2 stages"
    assert (last.configurations, last.failed, last.cached) == (3, 1, False)
    assert last.key == "n 40, torch.float32, torch.float32"
    assert last.seconds is not None
    assert 0 < last.seconds < 60
    # of keys before the last one Triton forgets how long they took
    assert (first.key, first.seconds, first.configurations) == ("n 96, torch.float32, torch.float32", None, 3)
    assert (work.pass_name, work.pid) == ("trace", done.record.pid)


def test_a_triton_that_is_something_else_costs_a_remark_and_nothing_more(workload: Run) -> None:
    done = workload("""
        import sys, types
        sys.modules["triton"] = types.ModuleType("triton")
        jit = sys.modules["triton.runtime.jit"] = types.ModuleType("triton.runtime.jit")
        class KernelInterface: pass
        class Autotuner(KernelInterface):
            cache = {(): None}
            configs = property(lambda self: 1 / 0)
            def __init__(self): self.cache = {}
        jit.KernelInterface = KernelInterface
        kernel = Autotuner()
        with profkit.region("a"): pass
        """)
    assert done.code == 0
    assert done.record.triton is None
    assert any("ZeroDivisionError" in note for note in done.record.notes)
    assert done.err == ""
