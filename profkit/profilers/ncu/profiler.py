"""ncu (Nsight Compute): the counters of single GPU kernels."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.errors import Fault
from profkit.core.types import Check
from profkit.profilers.profiler import Format, Recorder, later


class NsightCompute:
    """ncu, and the forms of its reports."""

    name = "ncu"
    formats = (
        Format(
            "ncu-rep",
            name,
            ".ncu-rep",
            later("profkit.profilers.ncu.formats.is_rep"),
            later("profkit.profilers.ncu.rep.read_ncu_rep"),
            later("profkit.profilers.ncu.scrub.scrub"),
        ),
        Format(
            "ncu-repz",
            name,
            ".ncu-repz",
            later("profkit.profilers.ncu.formats.is_repz"),
            later("profkit.profilers.ncu.repz.read_ncu_repz"),
            scrub=None,
            scrub_fix="ncu --import {name} --export report.ncu-rep, then scrub that",
        ),
        Format(
            "ncu-csv",
            name,
            "ncu --csv",
            later("profkit.profilers.ncu.formats.is_csv"),
            later("profkit.profilers.ncu.csv_raw.read_ncu_csv"),
            later("profkit.profilers.ncu.scrub_csv.scrub_csv"),
        ),
    )
    recorder = Recorder(
        later("profkit.profilers.ncu.recipe.recording_step"),
        later("profkit.profilers.ncu.recipe.collect"),
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
