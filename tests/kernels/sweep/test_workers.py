"""Workers end with their sweep, share its cases, and take neither the machine nor each other down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_sweep import InProcess, request_for
from small_sweep import in_process as in_process

from profkit.core.errors import MachineError, Silent
from profkit.execution.child import WorkerClient
from profkit.kernels.devices import check_device
from profkit.kernels.operations.registry import register_files
from profkit.kernels.sweep import run
from profkit.kernels.sweep.request import read_sweep
from profkit.kernels.sweep.run import run_sweep
from tests.spoken import spoken
from tests.workload_process import assert_gone, is_alive

ROOT = Path(__file__).resolve().parents[3]

HUNGRY = """
import os
from profkit.sweep import implementation

@implementation("GELU", "hungry")
def hungry(problem):
    import torch
    kept = []
    for _ in range(1 << 14):
        kept.append(torch.empty(1 << 28, dtype=torch.uint8))  # promised, never touched
    os._exit(9)  # nobody refused 4 TiB
"""
BUSY = """
import os
import subprocess
from pathlib import Path
from profkit.sweep import implementation

@implementation("GELU", "busy")
def busy(problem):
    other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path(__file__).with_name("other").write_text(str(other.pid))
    Path(__file__).with_name("pid").write_text(str(os.getpid()))
    while True:
        pass
"""


class Notes(Silent):
    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


def _until(condition: object, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


@pytest.mark.thorough
def test_no_worker_outlives_its_sweep_however_busy_it_is(tmp_path: Path) -> None:
    """Two sweeps at once, each ended in its own way."""
    numbers = (signal.SIGKILL, signal.SIGTERM)
    folders = [tmp_path / number.name for number in numbers]
    children = [_busy_sweep(folder) for folder in folders]
    for number, folder, child in zip(numbers, folders, children, strict=True):
        assert _until(lambda folder=folder: (folder / "pid").is_file() and (folder / "pid").read_text())
        worker = int((folder / "pid").read_text())
        (journal,) = (folder / "out").glob("*/cases.jsonl")
        assert _until(lambda journal=journal: '"case"' in journal.read_text())
        child.send_signal(number)
        _, told = child.communicate(timeout=30)
        assert_gone(worker)
        assert journal.read_text().count('"case"') == 1  # PyTorch's is kept
        other = int((folder / "other").read_text())
        if number == signal.SIGKILL:
            assert child.returncode == -9
            os.kill(other, signal.SIGKILL)
        else:
            assert child.returncode == 130
            assert f"profkit sweep --resume {journal.parent}" in told
            assert not is_alive(other)


def _busy_sweep(folder: Path) -> subprocess.Popen[str]:
    folder.mkdir()
    file = folder / "busy.py"
    file.write_text(BUSY)
    argv = [sys.executable, "-m", "profkit", "sweep", "--device", "cpu", "--with", str(file), "--batch", "2"]
    argv += ["--implementations", "PyTorch,busy", "--sequence", "4", "--dimension", "8", "--budget", "0.02"]
    return subprocess.Popen(
        [*argv, "--threads", "1", "--output", str(folder / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.thorough
def test_a_case_that_wants_more_memory_than_there_is_is_refused_it_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux limits what a process may take")
    file = tmp_path / "hungry.py"
    file.write_text(HUNGRY)
    register_files([file])
    request = request_for(tmp_path / "out", "hungry", "PyTorch", files=(file,))
    request = replace(request, grid=replace(request.grid, dimensions=(8,)))
    found = {result.implementation: result for result in run_sweep(request, Silent()).results}
    assert found["hungry"].state == "too large"
    assert "out of memory" in spoken(found["hungry"].reason)
    assert found["PyTorch"].state == "measured"
    assert found["PyTorch"].memory == 2 * (2 * 3 * 8 * 4)  # x and y


@pytest.mark.thorough
@pytest.mark.usefixtures("in_process")
def test_several_workers_share_a_sweep_and_one_that_cannot_start_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = replace(request_for(tmp_path / "out", "PyTorch"), gpus=("0", "1", "2"))
    request = replace(request, grid=replace(request.grid, dimensions=tuple(range(8, 24))))
    assert len(run.measuring_workers(request)) == 3
    clients = [InProcess(), WorkerClient("", python="/bin/false"), InProcess()]
    monkeypatch.setattr(run, "measuring_workers", lambda _: clients)
    notes = Notes()
    document = run_sweep(request, notes)
    assert [result.state for result in document.results] == ["measured"] * 16
    assert [result.point.dimension for result in document.results] == list(range(8, 24))
    assert {result.device for result in document.results} <= {0, 2}
    assert len(notes.told) == 1
    assert notes.told[0].startswith("worker 1 is gone, 2 others go on: ")


def test_devices_of_two_kinds_do_not_share_a_sweep() -> None:
    check_device(1, {"device": "H200"}, {"device": "H200"})
    with pytest.raises(MachineError, match="worker 1 is A10, and that of the first H200"):
        check_device(1, {"device": "A10"}, {"device": "H200"})
    newer = {"device": "H200", "versions": {"torch": "2.13"}}
    with pytest.raises(MachineError, match=r"worker 1 has .*2\.13"):
        check_device(1, newer, newer | {"versions": {"torch": "2.11"}})


@pytest.fixture
def small_files() -> Iterator[None]:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.thorough
@pytest.mark.usefixtures("in_process", "small_files")
def test_a_disk_that_takes_no_more_ends_the_sweep_and_the_same_call_goes_on(tmp_path: Path) -> None:
    """A limit on the size of files refuses writes in the middle of a line, as a full disk does."""
    import resource

    request = replace(request_for(tmp_path / "out", "PyTorch"))
    request = replace(request, grid=replace(request.grid, dimensions=tuple(range(8, 20))))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, most))
    with pytest.raises(MachineError, match=r"cannot write .*cases\.jsonl") as fault:
        run_sweep(request, Silent())
    assert fault.value.exit_code == 3
    assert f"profkit sweep --resume {request.folder}" in str(fault.value.fix)
    kept = read_sweep(request.folder).results
    assert 0 < len(kept) < 12
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    document = run_sweep(request, Silent())
    assert document.complete
    assert document.results[: len(kept)] == kept
