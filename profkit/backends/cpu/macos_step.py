"""One execution of the workload under a template of Instruments, exported, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from profkit.backends import Known, Site
from profkit.model import Directive, PassName, Report, Step, Switch
from profkit.passes.read_records import read_records
from profkit.tools.xctrace.alignment import CLOCK_TABLE, SIGNPOST_TABLE
from profkit.tools.xctrace.command import CUT, FINISH, TELL, record_argv
from profkit.tools.xctrace.export import export_argv
from profkit.tools.xctrace.probe import XctraceAbility
from profkit.tools.xctrace.report import read_exports

EXPORT_SECONDS = 900.0  # of one recording; a table of a minute of samples is some 100 MB
START_SECONDS = 10.0  # until xctrace records, has ended, and has exported: 2 to 3 s each on an M5, by others


def instruments_step(
    site: Site,
    xctrace: XctraceAbility,
    known: Known,
    pass_name: PassName,
    name: str,
    template: str,
    schemas: Sequence[str],
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    options: Mapping[str, str] | None = None,
) -> Step:
    """The step `name`: the workload launched by xctrace, without a shell in between, and its tables as XML.

    The recording is whole; a region is found in it afterwards, by the clock. `options` is one file (path and text) for
    --recording-options.
    """
    folder = site.folder / "artifacts"
    document, exports, status = (
        folder / f"{name}.trace",
        folder / f"{name}.xctrace",
        folder / f"{name}.status",
    )
    program = str(xctrace.path)
    return Step(
        name,
        record_argv(
            site.workload.command,
            document,
            template=template,
            options=next(iter(options), None) if options else None,
            xctrace=program,
        ),
        (f"artifacts/{name}.trace", f"artifacts/{name}.xctrace"),
        directive=Directive(
            pass_name,
            str(folder / f"{name}.region"),
            switch=Switch("signpost") if known.marked else None,
            iterations=iterations,
            seconds=seconds,
        ),
        files=dict(options or {}),
        tool="xctrace",
        workload_status=str(status),
        after=(
            export_argv(
                document, exports, (*schemas, CLOCK_TABLE, SIGNPOST_TABLE), status=status, xctrace=program
            ),
        ),
        after_limit=EXPORT_SECONDS,
        finish=FINISH,
        fine=(CUT,),
        tells=TELL,
    )


def read_step(folder: Path, step: Step) -> Report:
    """The exports of a step, restricted to what the workload marked. Raises UnreadableReport."""
    records = read_records(sorted((folder / "artifacts").glob(f"{step.name}.region.*.json")))
    return read_exports(folder / step.artifacts[1], [r for r in records if r.regions or r.benchmarks])


def of_region(report: Report) -> bool:
    """Whether only what lies in the region was read."""
    return "region" in report.facts
