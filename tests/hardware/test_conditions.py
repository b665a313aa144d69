from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.hardware import conditions
from profkit.hardware.conditions import (
    DisturbanceWatch,
    judge_noise,
    noise_checks,
)

Tree = Callable[..., Path]


def found(others: float | None = 0.01, governor: str | None = "performance", quota: float | None = None):  # type: ignore[no-untyped-def]
    checks = judge_noise(others, governor, quota, 8)
    assert all(check.fix for check in checks if check.state == "limited" and others is not None)
    return {check.name: check for check in checks}


def test_a_quiet_machine_has_nothing_to_fix() -> None:
    assert {check.state for check in found().values()} == {"ok"}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"others": 0.20}, "quiet machine"),
        ({"others": None}, "quiet machine"),
        ({"governor": "powersave"}, "frequency governor"),
        ({"quota": 1.5}, "container's processor limit"),
    ],
)
def test_each_disturbance_is_named_with_its_fix(changes: dict[str, object], name: str) -> None:
    assert {check.name for check in found(**changes).values() if check.state != "ok"} == {name}


def test_a_container_is_told_of_its_quota(tree: Tree) -> None:
    told = {check.name: check for check in noise_checks(tree("container"), window=0.01)}
    assert "2.5 of 16 cores' time" in told["container's processor limit"].detail
    assert "OMP_NUM_THREADS=2" in (told["container's processor limit"].fix or "")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


CPU = "cpu  {busy} 0 0 5000 0 0 0 {stolen} 0 0\n"


def test_what_others_took_while_a_process_ran_is_what_the_counters_rose_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "_ticks_per_second", lambda: 100)
    monkeypatch.setattr(conditions.platform, "system", lambda: "Linux")
    root = write(tmp_path, {"proc/stat": CPU.format(busy=1000, stolen=50)})
    watch = DisturbanceWatch(root)
    write(root, {"proc/stat": CPU.format(busy=1300, stolen=90)})
    seen = watch.ended(seconds=1.9, cpu=1.8, waited=0.25)
    assert (seen.seconds, seen.cpu, seen.waited) == (1.9, 1.8, 0.25)
    assert seen.stolen == pytest.approx(0.4)
    assert seen.others == pytest.approx(1.2)


def test_a_system_without_those_counters_is_told_as_none_and_not_as_nothing_taken(tmp_path: Path) -> None:
    seen = DisturbanceWatch(tmp_path).ended(seconds=1.0, cpu=1.0, waited=None)
    assert (seen.stolen, seen.others, seen.waited) == (None, None, None)
