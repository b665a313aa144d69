"""What a step finds in the run's folder, and what becomes of it where the disk is full."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.errors import MachineError
from profkit.core.types import PassPlan, Step
from profkit.profiling.run_passes import run_pass, run_timing
from profkit.profiling.run_steps import RunSettings, run_step


def test_the_options_of_a_tool_lie_there_before_it_starts(tmp_path):
    options = tmp_path / "artifacts" / "options.json"
    argv = (sys.executable, "-c", f"print(open({str(options)!r}, encoding='utf-8').read())")
    done = run_step(Step("one", argv, files={str(options): '{"a": "é"}'}), RunSettings(tmp_path))
    assert done.workload_ok
    assert '{"a": "é"}' in done.text()
    assert options.is_file()


@pytest.mark.parametrize(
    ("code", "says"), [(0, "what it left may be cut off"), (7, "the workload exited with 7")]
)
def test_a_full_disk_in_a_pass_is_named_however_its_step_ends(small_disk: Path, code: int, says: str) -> None:
    fill = "head -c 1m /dev/zero > artifacts/large 2>/dev/null; exit"
    steps = (Step("stacks", ("sh", "-c", f"{fill} {code}"), ("artifacts/large",)),)
    result = run_pass(PassPlan("stacks", None, steps), RunSettings(small_disk, str(small_disk))).result
    assert result.state == "failed"
    assert str(result.reason).startswith(f"the disk was full when stacks ended ({small_disk})")
    assert says in str(result.reason)
    assert str(result.fix).startswith(f"df -h {small_disk}; then --output FOLDER")


def test_timing_on_a_disk_that_fills_up_ends_with_its_name(small_disk: Path) -> None:
    steps = (Step("timing-1", ("sh", "-c", "head -c 1m /dev/zero > artifacts/large 2>/dev/null; true")),)
    settings = RunSettings(small_disk, str(small_disk))
    with pytest.raises(MachineError, match="the disk was full when timing-1 ended"):
        run_timing(PassPlan("timing", None, steps), settings, 0.5, 0.1, lambda _: None)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
