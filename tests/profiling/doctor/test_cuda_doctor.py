"""What the doctor says of CUDA, by what device, driver and probes told."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.backends.checks import (
    cuda_checks,
    holder_checks,
    judge_cuda,
    judge_torch,
    read_torch,
    sudo_checks,
)
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
    """Importing torch takes seconds; what this Python has, and lacks, has its own tests below."""
    monkeypatch.setattr("profkit.backends.checks.torch_checks", lambda: iter(()))
    monkeypatch.setattr("profkit.backends.checks.nvtx_checks", lambda: iter(()))


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


@pytest.mark.parametrize("path", ["/usr/sbin:/usr/bin:/bin", "/nowhere", ""])
def test_a_sudo_that_lost_the_callers_python_is_told_with_whole_paths(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/my python/bin/python3")
    [only] = sudo_checks({"SUDO_UID": "1000", "PATH": path})
    assert (only.name, only.state) == ("PATH under sudo", "limited")
    assert only.fix is not None
    assert only.fix.startswith('sudo -E env "PATH=$PATH" ')
    assert only.fix.count("'/my python/bin/python3'") == 2


def test_without_a_device_one_calm_line_says_why_and_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("profkit.hardware.gpu.read_gpus", lambda: ())
    monkeypatch.setattr("profkit.hardware.gpu.driver_fault", lambda: Fault("no GPU here", "--backend cpu"))
    monkeypatch.setattr("profkit.profilers.nsys.probe.find_nsys", lambda: None)
    [only] = cuda_checks()
    assert (only.name, only.state, only.fix) == ("cuda backend", "missing", "--backend cpu")
    assert "reports that were recorded elsewhere can be read here" in only.detail
    assert blocking_reason("cuda", (only,)) == only.detail


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("nv-hostengine", "dcgmi profile --pause"),
        ("dcgm-exporter", "dcgmi profile --pause"),
        ("dynolog", "dyno dcgm_profiling --mute=true"),
        ("ncu", "wait until it ends"),
    ],
)
def test_who_may_hold_the_counters_is_named_with_the_line_that_lets_go(
    tmp_path: Path, name: str, fix: str
) -> None:
    for pid, comm in ((1, "init"), (77, name), (78, name)):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "comm").write_text(f"{comm}\n")
    [only] = holder_checks(tmp_path)
    assert only.state == "limited"
    assert name in only.detail
    assert only.fix is not None
    assert fix in only.fix
    assert "systemctl stop" not in only.fix


@pytest.mark.parametrize(
    ("answer", "state", "says"),
    [
        ({"version": "2.11.0", "cuda": "13.0", "said": None}, "ok", "CUDA 13.0"),
        ({"version": "2.13.0+cpu", "cuda": None, "said": "no"}, "limited", "without CUDA"),
        (
            {
                "version": "2.11",
                "cuda": "13.0",
                "said": "The NVIDIA driver on your system is too old (12020)",
            },
            "refused",
            "too old",
        ),
        ({"version": "2.11", "cuda": "13.0", "said": "CUDA unknown error"}, "refused", "CUDA unknown error"),
        (None, "refused", "does not start: ImportError: libcudart"),
    ],
)
def test_torch_is_held_against_the_driver(answer: dict[str, object] | None, state: str, says: str) -> None:
    text = f"a warning\n{json.dumps(answer)}\n" if answer is not None else "Traceback"
    [check] = judge_torch(read_torch(text, "ImportError: libcudart", sys.executable))
    assert check.state == state
    assert says in check.detail
    assert state == "ok" or check.fix
