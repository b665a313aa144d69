"""Where valgrind is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from profkit.tools import places

_ELSEWHERE = ("/usr/local/bin", "/opt/valgrind/bin", "/opt/homebrew/bin")  # not always on a service's PATH


def find_valgrind() -> Path | None:
    """The valgrind to call: `PROFKIT_VALGRIND` where set, else the first on PATH, beside this interpreter or in
    the usual places.
    """
    chosen = os.environ.get("PROFKIT_VALGRIND")
    if chosen:
        found = shutil.which(chosen)
        return None if found is None else Path(found)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(places.BESIDE_PYTHON), *_ELSEWHERE])
    found = shutil.which("valgrind", path=path)
    return None if found is None else Path(found)
