from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.hardware.machine import available_memory, read_limits, read_machine, usable_cores

Tree = Callable[..., Path]
GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "cpu", "vendor", "family", "model", "cores", "virtual", "governor", "mhz", "architecture"),
    [
        ("vm", "AMD EPYC", "AuthenticAMD", 26, 2, 2, "kvm", None, None, "x86_64"),
        (
            *("intel_hybrid", "13th Gen Intel(R) Core(TM) i5-13600K", "GenuineIntel", 6, 183),
            *(20, None, "powersave", 5100.0, "x86_64"),
        ),
        (
            *("amd_zen4", "AMD EPYC 9354 32-Core Processor", "AuthenticAMD", 25, 17),
            *(16, None, "performance", 3799.072, "x86_64"),
        ),
        ("arm_neoverse", "Neoverse-N1", "ARM", 8, 0xD0C, 4, "kvm", None, None, "aarch64"),
        ("no_caches", "Cortex-A72", "ARM", 8, 0xD08, 4, None, None, None, "aarch64"),
        (
            *("container", "Intel(R) Xeon(R) Platinum 8488C", "GenuineIntel", 6, 143),
            *(2, "kubernetes in kvm", None, None, "x86_64"),
        ),
    ],
)
def test_a_recorded_machine_is_read_as_what_it_is(
    tree: Tree,
    name: str,
    cpu: str,
    vendor: str,
    family: int,
    model: int,
    cores: int,
    virtual: str | None,
    governor: str | None,
    mhz: float | None,
    architecture: str,
) -> None:
    machine = read_machine(tree(name))
    assert (machine.cpu, machine.vendor, machine.family, machine.model) == (cpu, vendor, family, model)
    assert (machine.cores, machine.virtual) == (cores, virtual)
    assert (machine.governor, machine.max_mhz, machine.architecture) == (governor, mhz, architecture)
    assert machine.system == "Linux"


def test_memory_is_what_the_container_may_take(tree: Tree) -> None:
    assert read_machine(tree("container")).memory_bytes == 2 * GIB
    assert available_memory(tree("container")) == GIB // 2


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000", 1), ("20000 100000", 1), ("max 100000", 16), ("nonsense", 16)]
)
def test_cores_are_the_whole_cores_of_the_quota(tree: Tree, quota: str, cores: int) -> None:
    assert read_machine(tree("container", {"sys/fs/cgroup/cpu.max": quota})).cores == cores


def test_version_1_groups_limit_too_and_its_largest_number_is_no_limit(tree: Tree) -> None:
    unlimited = read_limits(tree("lying_guest"))
    assert (unlimited.cpus, unlimited.memory) == (None, None)
    limited = tree(
        "lying_guest",
        {
            "sys/fs/cgroup/cpu,cpuacct/docker/f00/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu,cpuacct/docker/f00/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824",
        },
    )
    assert (read_limits(limited).cpus, read_limits(limited).memory) == (0.5, GIB)


@pytest.mark.parametrize(
    ("changes", "virtual"),
    [
        ({"sys/class/dmi/id/product_name": "m6g.metal"}, None),
        ({"sys/hypervisor/type": "xen"}, "xen"),
        ({"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}, "wsl"),
        ({"run/.containerenv": ""}, "podman in kvm"),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
                "sys/class/dmi/id/product_name": "Virtual Machine",
            },
            "hyper-v",
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
def test_hypervisors_and_containers_are_told_apart(
    tree: Tree, changes: dict[str, str], virtual: str | None
) -> None:
    assert read_machine(tree("arm_neoverse", changes)).virtual == virtual


def test_an_empty_tree_is_a_machine_of_which_nothing_is_known(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert (machine.cpu, machine.vendor, machine.governor, machine.max_mhz) == (
        "unknown",
        "unknown",
        None,
        None,
    )
    assert all(cache.source == "assumed" for cache in machine.caches)


def test_this_machine_can_be_read() -> None:
    machine = read_machine()
    assert machine.cores >= 1
    assert machine.memory_bytes > 64 << 20
    assert machine.architecture == platform.machine()
    assert platform.node() not in (machine.cpu, machine.release)
    assert len(usable_cores()) >= machine.cores
