"""ncu (Nsight Compute): the counters of single GPU kernels."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault, MachineError, UnreadableReport
from profkit.core.types import Check, Directive, Report, Step, Switch
from profkit.profilers.faults import collect_file
from profkit.profilers.ncu.command import SUFFIX, ncu_argv
from profkit.profilers.profiler import Format, Recorder, RecordRequest, lazy_function


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect_report` makes the report. Raises MachineError where ncu cannot do it here.

    With `request.kernel`: only kernels whose name contains it (or which `regex:...` finds), and all counters that
    explain them. Without: every kernel, with the counters that find its bottleneck.
    """
    from profkit.profilers.ncu.probe import probe_ncu
    from profkit.profilers.ncu.sets import counter_set

    ncu = probe_ncu()
    if not ncu.works:
        raise MachineError(ncu.reason or "ncu does not work here", ncu.fix)
    chip = ncu.chips[0] if ncu.chips else None
    names = ("standard",) if request.kernel is None else ("standard", "explain")
    sets = [counter_set(name, chip, ncu.version) for name in names]
    argv = ncu_argv(
        request.command,
        _scratch_report(request),
        metrics=tuple(dict.fromkeys(metric for one in sets for metric in one.metrics)),
        sections=tuple(dict.fromkeys(section for one in sets for section in one.sections)),
        only=request.kernel,
        marked=request.marked,
        ncu=str(ncu.path),
        version=ncu.version,
    )
    switch = Switch("cuda") if request.marked else None
    directive = Directive("counters", str(request.scratch / "region"), switch=switch, iterations=1)
    return Step("record", argv, directive=directive, tool="ncu", signals_as_codes=True)


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what ncu left to the report. Raises MachineError with ncu's own reason where there is nothing."""
    from profkit.profilers.ncu.faults import explain

    return collect_file(request, _scratch_report(request), "ncu", explain)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"record{SUFFIX}"


def _refuse_packed(path: Path) -> Report:
    """Python before 3.14 has no Zstandard."""
    plain = shlex.quote(f"{path.stem}.ncu-rep")
    raise UnreadableReport(
        f"{path} is compressed (Zstandard; an .ncu-repz, if it is a report)",
        f"zstd -d {shlex.quote(str(path))} -o {plain}, then read that",
    )


def _is_csv(head: bytes) -> bool:
    """Whether in `head`, the beginning of a file, a table of `ncu --csv` begins, with whatever before it."""
    if b"Process ID" not in head or b"Kernel Name" not in head:
        return False
    return any(line.replace(b'"', b"").startswith(b"ID,Process ID,") for line in head.splitlines())


_AS_TEXT = "ncu --import {name} --csv --page raw > {stem}.csv"


class NsightCompute:
    """ncu, and the forms of its reports."""

    name = "ncu"
    formats = (
        Format(
            "ncu-rep",
            name,
            ".ncu-rep",
            lambda head: head.startswith(b"NVR\0"),
            lazy_function("profkit.profilers.ncu.rep.read_ncu_rep"),
            as_text=_AS_TEXT,
        ),
        Format(
            "ncu-repz",
            name,
            ".ncu-repz",
            lambda head: head.startswith(b"\x28\xb5\x2f\xfd"),
            _refuse_packed,
            as_text=_AS_TEXT,
        ),
        Format(
            "ncu-csv",
            name,
            "ncu --csv",
            _is_csv,
            lazy_function("profkit.profilers.ncu.csv_report.read_ncu_csv"),
        ),
    )
    recorder = Recorder(recording_step, collect_report, picks_kernel=True, uses_gpu=True)

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What ncu's error means."""
        from profkit.profilers.ncu.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it is here, and whether this user may count."""
        from profkit.profilers.ncu.probe import ncu_checks

        return ncu_checks()
