from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.profilers.programs import distribution_family, install_line

SYSTEMS = {
    "debian": "ID=debian\nVERSION_ID=12",
    "ubuntu": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"',
    "mint": 'ID=linuxmint\nID_LIKE="ubuntu debian"',
    "fedora": "ID=fedora",
    "rocky": 'ID="rocky"\nID_LIKE="rhel centos fedora"',
    "amazon": 'ID="amzn"\nID_LIKE="fedora"',
    "arch": "ID=arch",
    "manjaro": "ID=manjaro\nID_LIKE=arch",
    "leap": 'ID="opensuse-leap"\nID_LIKE="suse opensuse"',
    "alpine": "ID=alpine",
    "odd": "ID=plan9",
    "none": "",
}


def _root(tmp_path: Path, system: str) -> Path:
    for path, content in (
        ("etc/os-release", SYSTEMS[system]),
        ("proc/sys/kernel/osrelease", "6.8.0-45-generic"),
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(content + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("system", "line"),
    [
        ("debian", "apt-get update && apt-get install -y linux-perf"),
        (
            "ubuntu",
            "apt-get update && "
            "apt-get install -y linux-tools-common linux-tools-generic linux-tools-6.8.0-45-generic",
        ),
        ("fedora", "dnf install -y perf"),
        ("rocky", "dnf install -y perf"),
        ("amazon", "dnf install -y perf"),
        ("arch", "pacman -S --noconfirm perf"),
        ("manjaro", "pacman -S --noconfirm perf"),
        ("leap", "zypper install -y perf"),
        ("alpine", "apk add perf"),
        ("odd", "install perf with this system's package manager"),
        ("none", "install perf with this system's package manager"),
    ],
)
def test_the_line_that_installs_perf_is_the_distributions(tmp_path: Path, system: str, line: str) -> None:
    assert install_line("perf", _root(tmp_path, system), superuser=True) == line


@pytest.mark.parametrize(
    ("sudo", "line"),
    [
        (True, "sudo apt-get update && sudo apt-get install -y valgrind"),
        (False, "as root: apt-get update && apt-get install -y valgrind"),
    ],
)
def test_a_user_who_is_not_root_is_given_sudo_for_every_part_of_the_line_where_there_is_one(
    tmp_path: Path, fake_tools: Callable[[dict[str, str]], Path], sudo: bool, line: str
) -> None:
    fake_tools({"sudo": "exit 1"} if sudo else {})
    assert install_line("valgrind", _root(tmp_path, "mint"), superuser=False) == line


def test_no_system_file_is_an_unknown_system(tmp_path: Path) -> None:
    assert distribution_family(tmp_path) is None
