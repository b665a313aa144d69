"""What a program's debug information says of how it was compiled."""

from __future__ import annotations

from pathlib import Path

from profkit.backends.cpu.linux import compiler_facts
from profkit.core.types import Workload

O0 = b"GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O0 -fasynchronous-unwind-tables"


def facts(folder: Path, data: bytes, python: str | None = None) -> dict[str, str]:
    (folder / "program").write_bytes(data)
    return compiler_facts(Workload(("./program",), "program", str(folder), python))


def test_gccs_options_are_read_from_the_program(tmp_path: Path) -> None:
    assert facts(tmp_path, b"\x7fELF..\0" + O0 + b"\0main\0") == {"compiler": O0.decode()}


def test_what_is_no_compiled_program_says_nothing(tmp_path: Path) -> None:
    assert facts(tmp_path, b"#!/bin/sh\n# " + O0) == {}
    assert facts(tmp_path, b"\x7fELF..\0" + O0 + b"\0", python="python3") == {}
    assert compiler_facts(Workload(("no-such-program",), "x", str(tmp_path))) == {}
