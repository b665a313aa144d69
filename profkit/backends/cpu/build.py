"""How a program was compiled, by what gcc writes into its debug information."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from profkit.backends.passes import head_of
from profkit.core.types import Workload

_PRODUCER = re.compile(rb"GNU (?:C|C\+\+|Fortran)\d* [0-9][^\0\n]{3,300}")
FACT = "compiler"


def compiler_facts(workload: Workload) -> dict[str, str]:
    """`compiler`: gcc's name, version and options, where all parts of the program that tell have the same ones.

    Empty for a program without debug information, of another compiler, or one that is not compiled: clang and rustc
    do not write their options, and compressed sections are not read.
    """
    program = workload.command[0] if workload.command else ""
    path = Path(workload.folder, program) if "/" in program else Path(shutil.which(program) or "")
    if workload.python is not None or not path.is_file():
        return {}
    data = head_of(path)
    if not data.startswith(b"\x7fELF"):
        return {}
    producers = {match.decode("ascii", "replace") for match in _PRODUCER.findall(data)}
    return {FACT: producers.pop()} if len(producers) == 1 else {}
