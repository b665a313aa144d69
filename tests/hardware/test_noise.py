from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.hardware.conditions import (
    Jitter,
    MachineConditions,
    judge_conditions,
    measure_jitter,
    noise_checks,
    read_conditions,
)

Tree = Callable[..., Path]
QUIET = MachineConditions(
    cores=8,
    load=0.3,
    pressure=0.1,
    others=0.01,
    stolen=0.0,
    jitter=Jitter(1e-3, 1.01e-3, 1.02e-3, 200),
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
        ({"jitter": Jitter(1e-3, 1.1e-3, 1.3e-3, 200)}, "steady speed"),
        ({"governor": "powersave"}, "frequency governor"),
        ({"quota": 1.5}, "container's processor limit"),
        ({"memory": 300 << 20}, "free memory"),
        ({"on_battery": True}, "power"),
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
    assert (seen.governor, seen.on_battery) == ("powersave", True)
    assert (seen.others, seen.stolen, seen.jitter) == (None, None, None)


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
    assert seen.jitter is not None
    assert seen.jitter.rounds >= 10


def test_fixed_work_takes_about_a_millisecond_and_its_percentiles_are_in_order() -> None:
    jitter = measure_jitter(rounds=30)
    assert 2e-4 < jitter.fastest < 2e-2
    assert jitter.fastest <= jitter.median <= jitter.p90
    assert jitter.spread >= 0
