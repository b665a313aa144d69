"""Passes under Instruments, of the CPU and of the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profkit.backends import PlanState, RunContext
from profkit.backends.passes import Pass
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import Directive, Report, Step, Switch
from profkit.profilers.xctrace.command import CUT, FINISH, TELL, absolute_command, explain_fault, record_argv
from profkit.profilers.xctrace.export import TOC, export_argv
from profkit.profilers.xctrace.find import XctraceAbility
from profkit.profilers.xctrace.report import REGION_TABLES, read_exports
from profkit.runtime.passes.read import read_records

EXPORT_SECONDS = 1800.0  # of one recording: a dozen tables, of which a large one takes minutes


class InstrumentsPass(Pass):
    """One execution of the workload under a template of Instruments, recorded by xctrace, exported, and read back."""

    tool = "xctrace"

    def __init__(self, context: RunContext, xctrace: XctraceAbility) -> None:
        super().__init__(context)
        self._xctrace = xctrace

    def recorded(
        self,
        name: str,
        directive: Directive,
        schemas: Sequence[str],
        *,
        template: str | None = None,
        instruments: Sequence[str] = (),
        limit: float | None = None,
        finish: float = FINISH,
    ) -> Step:
        """The step `name`: the workload launched by xctrace, nothing in between; those of `schemas` that come, as XML.

        The recording is whole; a region is found in it afterwards, by the clock. `limit`: seconds after which this plan
        itself ends the workload, so that the document stays in bounds; the user's own limit (`context.timeout`), where
        it comes first, is a failure as in any other step.
        """
        document, exports, status = (
            self.folder / f"{name}{end}" for end in (".trace", ".xctrace", ".status")
        )
        asked, program = self.context.timeout, str(self._xctrace.path)
        planned = limit is not None and (asked is None or limit < asked)
        workload = self.context.workload
        return Step(
            name,
            record_argv(
                absolute_command(workload.command, workload.folder),
                document,
                template=template,
                instruments=instruments,
                limit=limit if planned else asked,
                xctrace=program,
            ),
            (f"artifacts/{name}.trace", f"artifacts/{name}.xctrace"),
            directive=directive,
            tool="xctrace",
            workload_status=str(status),
            after=(
                export_argv(document, exports, schemas, status=status, may_be_cut=planned, xctrace=program),
            ),
            after_limit=EXPORT_SECONDS,
            finish=finish,
            own_limit=True,
            fine=(CUT,),
            tells=TELL,
        )

    def of_cpu(self, state: PlanState, name: str, template: str, schemas: Sequence[str], **told: Any) -> Step:
        """The step `name`: the whole process, of which a marked region is picked out afterwards."""
        directive = self.directive(name, Switch("signpost") if state.marked else None, **told)
        return self.recorded(name, directive, (*schemas, *REGION_TABLES), template=template)

    def read_step(self, step: Step) -> Report:
        """The exports of a step, restricted to what the workload marked.

        Raises UnreadableReport, with xctrace's own reason where it could not open or export what it had recorded.
        """
        exports = self.context.folder / step.artifacts[1]
        if not (exports / TOC).is_file():
            raise _explain_no_export(self.context.folder, step)
        records = read_records(sorted(self.folder.glob(f"{step.name}.region.*.json")))
        return read_exports(exports, [record for record in records if record.regions or record.benchmarks])


def _explain_no_export(folder: Path, step: Step) -> UnreadableReport:
    """By what the export said in our own words, else by what xctrace said while it recorded."""
    lines = [line.strip() for line in log_of(folder, f"{step.name}.after0.log").splitlines()]
    reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), None)
    if reason is not None:
        fix = next((line.removeprefix("fix: ") for line in lines if line.startswith("fix: ")), None)
        return UnreadableReport(
            reason.replace(str(folder / step.artifacts[0]), Path(step.artifacts[0]).name), fix
        )
    fault = explain_fault(log_of(folder, f"{step.name}.log"), 0)
    if fault is not None:
        return UnreadableReport(f"xctrace left nothing that can be read: {fault.reason}", fault.fix)
    if not (folder / step.artifacts[0]).exists():
        return UnreadableReport("xctrace left no document", f"see {step.name}.log")
    return UnreadableReport(
        f"xctrace recorded {step.name}.trace, but it could not be exported", f"see {step.name}.after0.log"
    )


def log_of(folder: Path, log: str) -> str:
    """What a step printed, as far as its log has it; "" where there is none."""
    try:
        return read_bounded_text(folder / "logs" / log, errors="replace")
    except OSError:
        return ""


START_SECONDS = 10.0  # until xctrace records, has ended, and has exported: 2 to 3 s each on an M5, by others
_KEPT = ("Instruments", "device model", "system")


def comparable_facts(report: Report) -> dict[str, str]:
    """What decides whether two runs may be compared; the rest of the facts is the run's own, or a GPU's."""
    return {name: report.facts[name] for name in _KEPT if name in report.facts}


def is_of_region(report: Report) -> bool:
    """Whether only what lies in the region was read."""
    return "region" in report.facts
