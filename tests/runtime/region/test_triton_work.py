"""What Triton did in a workload's process is found in Triton's own objects, and finding it breaks nothing."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from profkit.core.types import TritonWork, Tuning
from profkit.runtime.region.triton_work import find_triton_work
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


# ------------------------------------------------------------ other versions, by stand-ins for their objects


class KernelInterface:
    """Triton's base class of kernels."""


class Autotuner(KernelInterface):
    def __init__(self, **told: Any) -> None:
        self.__dict__.update(told)


class JITFunction(KernelInterface):
    def __init__(self, **told: Any) -> None:
        self.fn = example
        self.__dict__.update(told)


def example() -> None:
    """The Python function of a kernel."""


def config(block: int, **told: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"kwargs": {"B": block}, "num_warps": 4, "num_stages": 3, "num_ctas": 1, **told})


Place = Callable[..., TritonWork | None]


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> Place:
    """Puts kernels at the top of a module, and looks."""
    jit = ModuleType("triton.runtime.jit")
    jit.KernelInterface = KernelInterface  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", jit)
    top = ModuleType("somebodys_kernels")
    monkeypatch.setitem(sys.modules, "somebodys_kernels", top)

    def look(*kernels: Any) -> TritonWork | None:
        for number, kernel in enumerate(kernels):
            setattr(top, f"kernel_{number}", kernel)
        return find_triton_work("timing", 7)

    return look


CONFIGS = [config(1), config(2, num_ctas=2, maxnreg=64)]


def tunings(work: TritonWork | None) -> tuple[Tuning, ...]:
    assert work is not None
    return work.tunings


def test_a_choice_that_was_read_from_disk_took_no_seconds_and_says_so(placed: Place) -> None:
    read = Autotuner(
        fn=JITFunction(), base_fn=example, keys=["n"], configs=CONFIGS, cache={(8,): config(2)}, cache_results=True,
        configs_timings={0: [1.0], 1: [2.0]},
    )  # fmt: skip
    assert tunings(placed(read)) == (
        Tuning("example", __name__, "n 8", "B 2, 4 warps, 3 stages", 2, 0, None, True),
    )
