"""The line that installs a tool on this distribution, from /etc/os-release."""

from __future__ import annotations

from pathlib import Path

from profkit.hardware import tree
from profkit.hardware.system import as_superuser

# Family -> (installer, its packages by tool). `{release}` is the running kernel's.
_FAMILIES: dict[str, tuple[str, dict[str, str]]] = {
    "ubuntu": (
        "apt-get install -y",
        {"perf": "linux-tools-common linux-tools-generic linux-tools-{release}", "valgrind": "valgrind"},
    ),
    "debian": ("apt-get install -y", {"perf": "linux-perf", "valgrind": "valgrind"}),
    "fedora": ("dnf install -y", {"perf": "perf", "valgrind": "valgrind"}),
    "rhel": ("dnf install -y", {"perf": "perf", "valgrind": "valgrind"}),
    "arch": ("pacman -S --noconfirm", {"perf": "perf", "valgrind": "valgrind"}),
    "suse": ("zypper install -y", {"perf": "perf", "valgrind": "valgrind"}),
    "alpine": ("apk add", {"perf": "perf", "valgrind": "valgrind"}),
}
_KIN = {"opensuse": "suse", "sles": "suse", "centos": "rhel", "amzn": "fedora", "linuxmint": "ubuntu"}


def install_line(tool: str, root: Path = Path("/"), superuser: bool | None = None) -> str:
    """What to type to install `tool` (`perf`, `valgrind`); a general sentence where the system is unknown.

    `superuser` None asks the process.
    """
    system = distribution(root)
    if system is None:
        return f"install {tool} with this system's package manager"
    installer, packages = _FAMILIES[system]
    release = tree.read_text(root, "proc/sys/kernel/osrelease") or "$(uname -r)"
    line = f"{installer} {packages[tool].format(release=release)}"
    before = ("apt-get update",) if system in ("ubuntu", "debian") else ()  # a fresh image has no lists
    return as_superuser(*before, line, superuser=superuser)


def distribution(root: Path = Path("/")) -> str | None:
    """The family of this distribution, None where it is unknown."""
    told = tree.parse_fields(tree.read_text(root, "etc/os-release"), "=")
    names = [told.get("ID", ""), *told.get("ID_LIKE", "").strip("\"'").split()]
    for name in names:
        plain = name.strip("\"'").lower().split("-")[0]
        known = _KIN.get(plain, plain)
        if known in _FAMILIES:
            return known
    return None
