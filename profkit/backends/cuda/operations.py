"""Which operation and which line of Python launched each kernel: recorded beside the sampled stacks, by nsys.

Not in the trace: what writes each operation as an NVTX range costs the host 2.9 us each. A step of a GPT that keeps an
H100 busy for 95 % of 25.4 ms took 33 ms so, and the GPU seemed to wait for its host for a quarter of it. In the process
whose stacks are sampled no time of the device counts, and it costs no run of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from profkit.backends import PassFindings, PlanState
from profkit.backends.cuda.trace import EXPORT_SECONDS, NSYS_SECONDS, plain_runs
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.core.status import status_wrapper
from profkit.core.types import PassPlan
from profkit.profilers.nsys.command import export_argv, nsys_argv
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.host.operation_lines import VARIABLE

SWITCHED_OFF = "artifacts/stacks.jsonl.operations"
REPORT, EXPORT = "artifacts/operations.nsys-rep", "artifacts/operations.sqlite"


def record_operations(plan: PassPlan, folder: Path, nsys: Path, state: PlanState) -> PassPlan:
    """The pass with its one step traced by nsys, in which each call into torch is a range."""
    if plan.skipped is not None or len(plan.steps) != 1:
        return plan
    step = plan.steps[0]
    status = folder / "artifacts" / f"{step.name}.status"
    traced = replace(
        step,
        argv=nsys_argv(status_wrapper(step.argv, status), folder / REPORT, marked=False, nsys=str(nsys)),
        artifacts=(*step.artifacts, REPORT, EXPORT),
        env={**step.env, VARIABLE: "1"},
        tool="nsys",
        workload_status=str(status),
        after=(export_argv(folder / REPORT, folder / EXPORT, nsys=str(nsys)),),
    )
    more = plain_runs(NSYS_SECONDS + EXPORT_SECONDS, state) or 0.0
    return replace(
        plan,
        steps=(traced,),
        cost=plan.cost + more if plan.cost is not None else None,
        notes=(*plan.notes, "nsys tells which operation and line launched each kernel"),
    )


def add_launchers(findings: PassFindings, folder: Path) -> PassFindings:
    """What the pass found, with what launched each kernel where nsys left it; its times are not taken."""
    path = folder / EXPORT
    if not path.is_file():
        return findings
    notes = (*findings.notes, *_switched_off(folder / SWITCHED_OFF))
    try:
        report = recognise_format(path).read(path)
    except UnreadableReport as error:
        return replace(findings, notes=(*notes, f"which operation launched a kernel: {error.message}"))
    launched = report.trace.kernels if report.trace is not None else ()
    return replace(findings, launched=launched, notes=notes)


def _switched_off(path: Path) -> Iterator[str]:
    """Why lines and operations were written for a part of the time only, as the workload's processes say."""
    try:
        lines = read_bounded_text(path).splitlines()
    except (OSError, ValueError):
        return
    for line in lines[:1000]:
        with suppress(ValueError, AttributeError):  # a line that a killed process did not finish
            reason = json.loads(line).get("reason")
            if isinstance(reason, str):
                yield f"operations and lines of the kernels are those of a part of the run: {reason[:300]}"
