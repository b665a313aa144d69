"""The file to which each process adds what it found beside samples and calls: a line of JSON for each."""

from __future__ import annotations

import json
import os
from contextlib import suppress

SCHEMA = "profkit.operations/1"
MAX_ROWS = 10
MAX_KERNELS = 1000


def add_to_file(out: str, **found: object) -> None:
    """Add what this process found to the file of all processes."""
    with (
        suppress(Exception),
        open(f"{out}.operations", "a", encoding="utf-8") as file,
    ):  # the program comes first
        file.write(json.dumps({"schema": SCHEMA, "pid": os.getpid(), **found}) + "\n")
