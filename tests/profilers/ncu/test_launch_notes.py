"""What is noted of launches whose configuration is one and which differ in something else."""

from __future__ import annotations

from profkit.core.types import Fact, Kernel
from profkit.profilers.ncu.launches import LaunchGroup
from profkit.profilers.ncu.report import different_launches


def group(name: str, *, devices: int = 1, shapes: int = 1) -> LaunchGroup:
    kernel = Kernel(name, (8, 1, 1), (64, 1, 1))
    return LaunchGroup(
        kernel, kernel.scope, 0, devices=set(range(devices)), shapes={(at, 0) for at in range(shapes)}
    )


def test_kernels_that_several_devices_launched_are_one_note_however_many_they_are() -> None:
    groups = [
        group("alone"),
        *(group(f"step_{at}", devices=2) for at in range(14)),
        group("both", shapes=3, devices=2),
    ]
    found = tuple(different_launches(groups))
    assert [(note.names["name"], note.numbers["more"]) for note in found] == [("step_0", 13), ("both", 0)]
    assert found[0].parts == (Fact("several-devices"),)
    assert found[1].parts == (Fact("other-registers"), Fact("several-devices"))
