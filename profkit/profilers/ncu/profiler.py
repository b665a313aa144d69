"""ncu (Nsight Compute): the counters of single GPU kernels."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Format, Recorder, lazy_function


def _is_rep(head: bytes) -> bool:
    """Whether `head`, the beginning of a file, is that of an .ncu-rep."""
    return head.startswith(b"NVR\0")


def _is_repz(head: bytes) -> bool:
    """Whether `head` begins a Zstandard frame, as an .ncu-repz does: what is in it is seen when it is read."""
    return head.startswith(b"\x28\xb5\x2f\xfd")


def _is_csv(head: bytes) -> bool:
    """Whether in `head`, the beginning of a file, a table of `ncu --csv` begins, with whatever before it."""
    if b"Process ID" not in head or b"Kernel Name" not in head:
        return False
    return any(line.replace(b'"', b"").startswith(b"ID,Process ID,") for line in head.splitlines())


class NsightCompute:
    """ncu, and the forms of its reports."""

    name = "ncu"
    formats = (
        Format(
            "ncu-rep",
            name,
            ".ncu-rep",
            _is_rep,
            lazy_function("profkit.profilers.ncu.rep.read_ncu_rep"),
            lazy_function("profkit.profilers.ncu.scrub.scrub"),
        ),
        Format(
            "ncu-repz",
            name,
            ".ncu-repz",
            _is_repz,
            lazy_function("profkit.profilers.ncu.rep.read_ncu_repz"),
            scrub=None,
            scrub_fix="ncu --import {name} --export report.ncu-rep, then scrub that",
        ),
        Format(
            "ncu-csv",
            name,
            "ncu --csv",
            _is_csv,
            lazy_function("profkit.profilers.ncu.csv_report.read_ncu_csv"),
            lazy_function("profkit.profilers.ncu.scrub.scrub_csv"),
        ),
    )
    recorder = Recorder(
        lazy_function("profkit.profilers.ncu.record.recording_step"),
        lazy_function("profkit.profilers.ncu.record.collect_report"),
        picks_kernel=True,
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What ncu's error means."""
        from profkit.profilers.ncu.faults import explain

        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it is here, and whether this user may count."""
        from profkit.profilers.ncu.probe import ncu_checks

        return ncu_checks()
