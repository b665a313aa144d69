from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.hardware import conditions
from profkit.hardware.conditions import (
    DisturbanceWatch,
    MachineConditions,
    judge_conditions,
    noise_checks,
    read_conditions,
    read_moment,
)

Tree = Callable[..., Path]
QUIET = MachineConditions(
    cores=8,
    load=0.3,
    pressure=0.1,
    others=0.01,
    stolen=0.0,
    governor="performance",
    memory=16 << 30,
)


def _limited(conditions: MachineConditions) -> set[str]:
    checks = judge_conditions(conditions)
    assert all(check.fix for check in checks if check.state == "limited")
    return {check.name for check in checks if check.state != "ok"}


def _with(**changes: object) -> MachineConditions:
    return MachineConditions(**{**QUIET.__dict__, **changes})


def test_a_quiet_machine_has_nothing_to_fix() -> None:
    assert _limited(QUIET) == set()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"others": 0.20}, "quiet machine"),
        ({"pressure": 12.0}, "quiet machine"),
        ({"load": 9.5}, "quiet machine"),
        ({"stolen": 0.03}, "stolen time"),
        ({"governor": "powersave"}, "frequency governor"),
        ({"quota": 1.5}, "container's processor limit"),
        ({"memory": 300 << 20}, "free memory"),
    ],
)
def test_each_disturbance_is_named_with_its_fix(changes: dict[str, object], name: str) -> None:
    assert _limited(_with(**changes)) == {name}


def test_what_the_machine_does_not_tell_is_not_called_good() -> None:
    names = {check.name for check in judge_conditions(MachineConditions(cores=1))}
    assert names == {"quiet machine", "frequency governor"}
    assert _limited_names(MachineConditions(cores=1)) == {"quiet machine"}


def _limited_names(conditions: MachineConditions) -> set[str]:
    return {check.name for check in judge_conditions(conditions) if check.state == "limited"}


def test_a_recorded_laptop_is_read(tree: Tree) -> None:
    seen = read_conditions(tree("intel_hybrid"))
    assert (seen.load, seen.pressure, seen.cores) == (0.35, 0.42, 20)
    assert seen.governor == "powersave"
    assert (seen.others, seen.stolen) == (None, None)


def test_a_crowded_container_is_told_of_its_quota_and_its_neighbours(tree: Tree) -> None:
    found = {check.name: check for check in noise_checks(tree("container"))}
    assert found["quiet machine"].state == "limited"
    assert "2.5 of 16 cores' time" in found["container's processor limit"].detail
    assert "OMP_NUM_THREADS=2" in (found["container's processor limit"].fix or "")
    assert found["free memory"].state == "limited"


def test_a_look_at_this_machine_takes_its_window_and_sees_its_own_work_as_its_own() -> None:
    seen = read_conditions(window=0.3)
    if seen.others is None:
        pytest.skip("no /proc/stat here")
    assert 0.0 <= seen.others <= 1.0


# ------------------------------------------------------------ test_moment

FILES = {
    "proc/self/status": "Cpus_allowed_list:\t0-1",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3",
    "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "4",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_what_the_files_tell(tmp_path: Path) -> None:
    seen = read_moment(root=write(tmp_path, FILES))
    assert seen.throttled == 7


def test_here_a_look_works_with_and_without_devices() -> None:
    assert not read_moment(devices=False).slowdowns
    read_moment(devices=True)


CPU = "cpu  {busy} 0 0 5000 0 0 0 {stolen} 0 0\n"


def test_what_others_took_while_a_process_ran_is_what_the_counters_rose_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "_ticks_per_second", lambda: 100)
    monkeypatch.setattr(conditions.platform, "system", lambda: "Linux")
    stalled = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
    root = write(
        tmp_path,
        {"proc/stat": CPU.format(busy=1000, stolen=50), "proc/pressure/cpu": stalled.format(1_000_000)},
    )
    watch = DisturbanceWatch(root)
    monkeypatch.setattr(watch, "_elapsed", lambda: 2.0)
    write(
        root, {"proc/stat": CPU.format(busy=1300, stolen=90), "proc/pressure/cpu": stalled.format(1_500_000)}
    )
    seen = watch.ended(seconds=1.9, cpu=1.8, waited=0.25)
    assert (seen.seconds, seen.cpu, seen.waited, seen.pressure) == (1.9, 1.8, 0.25, 0.25)
    assert seen.stolen == pytest.approx(0.4)
    assert seen.others == pytest.approx(1.2)


def test_a_system_without_those_counters_is_told_as_none_and_not_as_nothing_taken(tmp_path: Path) -> None:
    seen = DisturbanceWatch(tmp_path).ended(seconds=1.0, cpu=1.0, waited=None)
    assert (seen.stolen, seen.others, seen.pressure, seen.waited) == (None, None, None, None)
