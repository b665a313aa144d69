"""A line that only root may type, as this user can type it."""

from __future__ import annotations

import os
import shutil


def as_superuser(*commands: str, superuser: bool | None = None) -> str:
    """The commands as one line: as they are for root, with `sudo` where there is one, else said to be for root.

    None asks the process who it is. Minimal systems and containers have no sudo, and a line with it fails there.
    """
    if superuser is None:
        superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    if superuser:
        return " && ".join(commands)
    if shutil.which("sudo") is not None:
        return " && ".join(f"sudo {command}" for command in commands)
    return f"as root: {' && '.join(commands)}"
