"""Runs a small command and tells how it went in few words; the doctor's only way to touch a tool.

The line that installs a tool on this distribution, from /etc/os-release.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core import process
from profkit.core.errors import UsageError
from profkit.hardware import tree
from profkit.hardware.superuser import as_superuser


@dataclass(frozen=True)
class Trial:
    """A command that was tried: did it end well, what did it print, and in words how it ended."""

    ok: bool
    output: str
    ending: str
    returncode: int

    @property
    def first_line(self) -> str:
        """The first line that says something."""
        return next((line.strip() for line in self.output.splitlines() if line.strip()), "it printed nothing")

    @property
    def last_line(self) -> str:
        """The last line that says something: where a Python program tells its error."""
        lines = self.output.splitlines()[::-1]
        return next((line.strip() for line in lines if line.strip()), "it printed nothing")


def try_command(argv: Sequence[str], env: Mapping[str, str] | None = None, seconds: float = 10.0) -> Trial:
    """Run `argv` for at most `seconds`, in plain English; never raises for a command that fails."""
    try:
        outcome = process.run(argv, env={"LC_ALL": "C", **(env or {})}, timeout=seconds)
    except UsageError as error:
        return Trial(False, error.message, error.message, 127)
    return Trial(outcome.ok, outcome.output_tail, outcome.ending(), outcome.returncode)


def tool_version(tool: str, *flags: str) -> tuple[str | None, Trial | None]:
    """Where `tool` is on PATH and what it answers to `--version` (or `flags`); (None, None) where absent."""
    path = shutil.which(tool)
    return (path, try_command([path, *(flags or ("--version",))])) if path else (None, None)


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
    release = tree.text(root, "proc/sys/kernel/osrelease") or "$(uname -r)"
    line = f"{installer} {packages[tool].format(release=release)}"
    before = ("apt-get update",) if system in ("ubuntu", "debian") else ()  # a fresh image has no lists
    return as_superuser(*before, line, superuser=superuser)


def distribution(root: Path = Path("/")) -> str | None:
    """The family of this distribution, None where it is unknown."""
    told = tree.fields(tree.text(root, "etc/os-release"), "=")
    names = [told.get("ID", ""), *told.get("ID_LIKE", "").strip("\"'").split()]
    for name in names:
        plain = name.strip("\"'").lower().split("-")[0]
        known = _KIN.get(plain, plain)
        if known in _FAMILIES:
            return known
    return None
