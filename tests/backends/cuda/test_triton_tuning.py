"""A workload whose kernels Triton tunes: once for all passes, told apart from its time, and never broken by that.

Triton's tuner is the real one; the device that it asks for is a stand-in, and nothing is launched.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from profkit.reporting.views.summaries import summary_texts
from tests.backends.cuda.conftest import Machine

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

# The second configuration is the fastest, in the first process that asks; `key` is what the kernel is tuned for.
TUNED = """
import profkit
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Hopper:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)
    def get_benchmarker(self):
        times = iter([3.0, 1.0, 2.0])
        return lambda call, quantiles: [next(times)] * 3

driver.set_active(Hopper())

@triton.autotune([triton.Config({{"B": block}}) for block in (16, 32, 64)], key=["n"])
@triton.jit
def doubled(x, n, B: tl.constexpr):
    pass

doubled.fn.run = lambda *arguments, **chosen: sum(range(2000))
profkit.benchmark(lambda: doubled[(1,)](None, {key}), name="gated_mlp")
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of Triton's that is empty, and an environment that says nothing of it."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.delenv("TRITON_CACHE_AUTOTUNING", raising=False)


def test_the_first_pass_tunes_and_the_others_read_what_it_chose(machine: Machine) -> None:
    run = machine.profile(TUNED.format(key=8), depth="gate")
    told = {work.pass_name: work.tunings for work in run.triton}
    assert list(told) == ["timing", "trace", "counters"]
    assert {name: [tuning.cached for tuning in tunings] for name, tunings in told.items()} == {
        "timing": [False],
        "trace": [True],
        "counters": [True],
    }
    assert {tuning.best for tunings in told.values() for tuning in tunings} == {"B 32, 4 warps, 3 stages"}
    summary = next(text for text in summary_texts(run) if text.concern == "triton")
    assert summary.headline.startswith("Triton tuned doubled in ")
    assert "Every pass ran the same configurations." in summary.notes


def test_where_triton_cannot_keep_its_choice_the_workload_runs_as_it_does_without_profkit(
    machine: Machine,
) -> None:
    run = machine.profile(TUNED.format(key="tl.float16"), depth="gate")
    assert run.state == "complete"
    assert "The workload failed with TRITON_CACHE_AUTOTUNING set, and ran without it." in run.notes
    assert any("once more" in line for line in machine.said)
    assert [tuning.cached for work in run.triton for tuning in work.tunings] == [False, False, False]
