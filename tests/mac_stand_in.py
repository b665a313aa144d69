"""A Mac that is none: its small programs as shell scripts on a PATH of their own, which answer with texts.

The texts are typed after public examples of the real programs' output (issues and sources on GitHub that quote them);
none was recorded for profkit. What a test needs otherwise it hands over.
"""

from __future__ import annotations

import plistlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

M3_MAX: dict[str, str] = {
    "machdep.cpu.brand_string": "Apple M3 Max",
    "hw.memsize": "68719476736",
    "hw.logicalcpu": "16",
    "hw.nperflevels": "2",
    "hw.perflevel0.name": "Performance",
    "hw.perflevel0.logicalcpu": "12",
    "hw.perflevel0.l1icachesize": "196608",
    "hw.perflevel0.l1dcachesize": "131072",
    "hw.perflevel0.l2cachesize": "16777216",
    "hw.perflevel0.cpusperl2": "6",
    "hw.perflevel1.name": "Efficiency",
    "hw.perflevel1.logicalcpu": "4",
    "hw.cachelinesize": "128",
    "hw.optional.arm.FEAT_BF16": "1",
    "hw.optional.arm.FEAT_SME": "0",
    "kern.hv_vmm_present": "0",
    "sysctl.proc_translated": "0",
}
IOREG = "ioreg -r -c IOAccelerator -d 1 -a"


def accelerator(
    model: str | bytes | None, cores: int | bytes | None, kind: str = "AGXAcceleratorG15X"
) -> dict[str, Any]:
    """One entry of ioreg's list; the values that are None are left out."""
    entry: dict[str, Any] = {"IOClass": kind, "IORegistryEntryName": kind}
    entry |= {"model": model} if model is not None else {}
    entry |= {"gpu-core-count": cores} if cores is not None else {}
    busy = {"Device Utilization %": 12, "In use system memory": 1046872064, "Alloc system memory": 6614056960}
    return {**entry, "PerformanceStatistics": busy}


def ioreg(*entries: dict[str, Any]) -> str:
    """What `ioreg ... -a` prints for these."""
    return plistlib.dumps(list(entries)).decode()


def programs(folder: Path, answers: Mapping[str, str | int], sysctl: Mapping[str, str] | None = None) -> Path:
    """A folder with one script for each program that `answers` names.

    A key is a whole command line, or a program alone for all others of its lines; its value is what is printed, or the
    status it ends with after printing nothing. `sysctl` knows these names and no others.
    """
    folder.mkdir(exist_ok=True)
    lines: dict[str, list[tuple[str, str | int]]] = {}
    for command, answer in answers.items():
        name, _, rest = command.partition(" ")
        lines.setdefault(name, []).append((rest, answer))
    for name, value in (sysctl or {}).items():
        lines.setdefault("sysctl", []).append((f"-n {name}", f"{value}\n"))
    for name, cases in lines.items():
        branches = "\n".join(
            f"    {shlex.quote(rest) if rest else '*'}) {_done(answer)} ;;"
            for rest, answer in sorted(cases, key=lambda case: not case[0])
        )
        script = folder / name
        script.write_text(f'#!/bin/sh\ncase "$*" in\n{branches}\nesac\necho "$0: unknown $*" >&2\nexit 1\n')
        script.chmod(0o755)
    return folder


def _done(answer: str | int) -> str:
    return f"exit {answer}" if isinstance(answer, int) else f"printf %s {shlex.quote(answer)}; exit 0"
