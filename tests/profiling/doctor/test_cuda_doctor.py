"""What the doctor says of CUDA, by what device, driver and probes told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.backends.cuda.run import cuda_checks, judge_cuda
from profkit.core.errors import Fault
from profkit.core.types import Check, Gpu
from profkit.profilers.ncu.probe import NcuAbility
from profkit.profilers.programs import ToolAbility
from profkit.profiling.doctor import blocking_reason

H200 = Gpu("NVIDIA H200", 0, "9.0", "GH100", 132, 150 << 30, driver="580.159.04")


WORKING = NcuAbility(Path("/opt/nvidia/ncu"), "2025.3.1", True, chips=("GH100",))
TRACING = ToolAbility(Path("/opt/nvidia/nsys"), "2025.3.2", True)
DENIED = replace(
    WORKING, works=False, reason="the driver keeps the counters for root", fix="options nvidia ...=0"
)
ABSENT = NcuAbility(None, None, False, "ncu is not installed")
NO_NSYS = ToolAbility(None, None, False, "nsys is not installed", "apt-get install nsight-systems-cli")


@pytest.fixture(autouse=True)
def _no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this Python lacks is no matter here."""
    monkeypatch.setattr("profkit.backends.cuda.run.nvtx_checks", lambda: iter(()))


def told(ncu: NcuAbility, nsys: ToolAbility, gpu: Gpu = H200) -> dict[str, Check]:
    return {check.name: check for check in judge_cuda((gpu,), ncu, nsys)}


def test_where_all_works_every_line_is_ok() -> None:
    found = told(WORKING, TRACING)
    assert {name: check.state for name, check in found.items()} == dict.fromkeys(
        ("cuda backend", "GPU 0", "ncu", "GPU counters", "nsys"), "ok"
    )
    assert "GH100, compute capability 9.0, 150 GiB, driver 580.159.04" in found["GPU 0"].detail


@pytest.mark.parametrize(
    ("ncu", "nsys", "says"),
    [
        (DENIED, TRACING, "verdicts that need them will be unknown"),
        (WORKING, NO_NSYS, "torch's own profiler traces instead"),
        (ABSENT, NO_NSYS, "profkit times here"),
    ],
)
def test_what_tools_cannot_do_limits_the_backend_and_does_not_block_it(
    ncu: NcuAbility, nsys: ToolAbility, says: str
) -> None:
    found = told(ncu, nsys)
    assert found["cuda backend"].state == "limited"
    assert says in found["cuda backend"].detail
    assert blocking_reason("cuda", tuple(found.values())) is None


def test_without_a_device_one_calm_line_says_why_and_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("profkit.hardware.nvidia.read_gpus", lambda: ())
    monkeypatch.setattr("profkit.hardware.nvidia.driver_fault", lambda: Fault("no GPU here", "--backend cpu"))
    monkeypatch.setattr("profkit.profilers.nsys.probe.find_nsys", lambda: None)
    [only] = cuda_checks()
    assert (only.name, only.state, only.fix) == ("cuda backend", "missing", "--backend cpu")
    assert "reports that were recorded elsewhere can be read here" in only.detail
    assert blocking_reason("cuda", (only,)) == only.detail
