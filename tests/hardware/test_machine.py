from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.hardware.machine import (
    USUAL,
    available_memory,
    data_caches,
    instruction_cache,
    read_machine,
    usable_cores,
)

Tree = Callable[..., Path]
GIB = 1 << 30


MACHINES = {
    "vm": ("AMD EPYC", "AuthenticAMD", 26, 2, 2, "virtual machine", None, None, "x86_64"),
    "intel_hybrid": (
        *("13th Gen Intel(R) Core(TM) i5-13600K", "GenuineIntel", 6, 183, 20, None),
        *("powersave", 5100.0, "x86_64"),
    ),
    "amd_zen4": (
        *("AMD EPYC 9354 32-Core Processor", "AuthenticAMD", 25, 17, 16, None),
        *("performance", 3799.072, "x86_64"),
    ),
    "arm_neoverse": ("Neoverse-N1", "ARM", 8, 0xD0C, 4, "virtual machine", None, None, "aarch64"),
    "no_caches": ("Cortex-A72", "ARM", 8, 0xD08, 4, None, None, None, "aarch64"),
    "container": (
        *("Intel(R) Xeon(R) Platinum 8488C", "GenuineIntel", 6, 143, 2, "container in a virtual machine"),
        *(None, None, "x86_64"),
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_recorded_machine_is_read_as_what_it_is(tree: Tree, name: str) -> None:
    one = read_machine(tree(name))
    told = (one.cpu, one.vendor, one.family, one.model, one.cores, one.virtual, one.governor, one.max_mhz)
    assert (*told, one.architecture) == MACHINES[name]
    assert one.system == "Linux"


def test_memory_is_what_the_container_may_take(tree: Tree) -> None:
    assert read_machine(tree("container")).memory_bytes == 2 * GIB
    assert available_memory(tree("container")) == GIB // 2


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000", 1), ("20000 100000", 1), ("max 100000", 16), ("nonsense", 16)]
)
def test_cores_are_the_whole_cores_of_the_quota(tree: Tree, quota: str, cores: int) -> None:
    assert read_machine(tree("container", {"sys/fs/cgroup/cpu.max": quota})).cores == cores


@pytest.mark.parametrize(
    ("changes", "virtual"),
    [
        ({"sys/class/dmi/id/product_name": "m6g.metal"}, None),
        ({"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}, "virtual machine"),
        ({"run/.containerenv": ""}, "container in a virtual machine"),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "sys/class/dmi/id/product_name": "Virtual Machine",
            },
            "virtual machine",
        ),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "sys/class/dmi/id/product_name": "Surface",
            },
            None,
        ),
    ],
)
def test_guests_and_containers_are_told_apart(
    tree: Tree, changes: dict[str, str], virtual: str | None
) -> None:
    assert read_machine(tree("arm_neoverse", changes)).virtual == virtual


def test_an_empty_tree_is_a_machine_of_which_nothing_is_known(tmp_path: Path) -> None:
    one = read_machine(tmp_path)
    assert (one.cpu, one.vendor, one.governor, one.max_mhz) == ("unknown", "unknown", None, None)
    assert all(cache.source == "assumed" for cache in one.caches)


def test_this_machine_can_be_read() -> None:
    machine = read_machine()
    assert machine.cores >= 1
    assert machine.memory_bytes > 64 << 20
    assert machine.architecture == platform.machine()
    assert platform.node() not in (machine.cpu, machine.release)
    assert len(usable_cores()) >= machine.cores


# ------------------------------------------------------------ test_caches

KIB, MIB = 1024, 1024 * 1024
INDEX = "sys/devices/system/cpu/cpu0/cache/index"


@pytest.mark.parametrize(
    ("name", "instruction", "data"),
    [
        ("vm", (32 * KIB, 8, 1), [(48 * KIB, 12, 1), (MIB, 16, 1), (32 * MIB, 16, 2)]),
        ("intel_hybrid", (32 * KIB, 8, 2), [(48 * KIB, 12, 2), (2 * MIB, 16, 2), (24 * MIB, 12, 20)]),
        ("amd_zen4", (32 * KIB, 8, 2), [(32 * KIB, 8, 2), (MIB, 8, 2), (32 * MIB, 16, 8)]),
        ("arm_neoverse", (64 * KIB, 4, 1), [(64 * KIB, 4, 1), (MIB, 8, 1), (32 * MIB, 16, 4)]),
        ("container", (32 * KIB, 8, 2), [(48 * KIB, 12, 2), (2 * MIB, 16, 2), (105 * MIB, 15, 16)]),
    ],
)
def test_the_geometry_of_a_core_is_that_of_sysfs(
    tree: Tree, name: str, instruction: tuple[int, int, int], data: list[tuple[int, int, int]]
) -> None:
    machine = read_machine(tree(name))
    first = instruction_cache(machine)
    assert (first.size, first.ways, first.shared) == instruction
    assert [(cache.size, cache.ways, cache.shared) for cache in data_caches(machine)] == data
    assert {cache.source for cache in (first, *machine.caches)} == {"sysfs"}


@pytest.mark.parametrize(
    ("index", "field", "value"),
    [
        (0, "size", "48"),
        (0, "size", "huge"),
        (0, "coherency_line_size", "63"),
        (2, "size", "16K"),  # smaller than L1
        (2, "size", "1000K"),  # 1000 sets: an address has no such field
        (3, "size", "33554500"),  # no whole number of sets
        (3, "size", "512K"),  # smaller than L2
        (3, "ways_of_associativity", "0"),
    ],
)
def test_an_impossible_level_is_replaced_and_the_others_are_kept(
    tree: Tree, index: int, field: str, value: str
) -> None:
    root = tree("vm", {f"{INDEX}{index}/{field}": value})
    level = max(1, index)
    for cache in read_machine(root).caches:
        assert cache.source == ("assumed" if cache.level == level else "sysfs")


def test_of_a_machine_without_cache_files_a_common_geometry_is_assumed(tree: Tree) -> None:
    machine = read_machine(tree("no_caches"))
    assert {c.level: (c.size, c.ways) for c in machine.caches} == USUAL
    assert {c.source for c in (*machine.caches, instruction_cache(machine))} == {"assumed"}


def test_an_emulators_stand_in_geometry_is_not_believed_in_a_guest_only(tree: Tree) -> None:
    changes = {
        f"{INDEX}2/size": "4096K",
        f"{INDEX}2/ways_of_associativity": "16",
        f"{INDEX}3/size": "16384K",
        f"{INDEX}3/ways_of_associativity": "16",
    }
    assert [cache.source for cache in read_machine(tree("vm", changes)).caches] == [
        "sysfs",
        "assumed",
        "assumed",
    ]
    clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource"
    metal = {**changes, clocks: "tsc", "proc/cpuinfo": "processor: 0\nvendor_id: AuthenticAMD\nflags: avx2"}
    assert {cache.source for cache in read_machine(tree("vm", metal)).caches} == {"sysfs"}
