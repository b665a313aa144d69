"""One execution of the workload under a template of Instruments that looks at the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.backends import Known, Site
from profkit.backends.instruments import instruments_step
from profkit.core.types import Directive, PassName, Report, Step, Switch
from profkit.profilers.xctrace.find import XctraceAbility
from profkit.profilers.xctrace.report import REGION_TABLES

START_SECONDS = 10.0  # until xctrace records, has ended, and has exported: 2 to 3 s each on an M5, by others
_KEPT = ("Instruments", "device model", "system")


def cpu_step(
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
    """The step `name`: the whole process, of which a marked region is picked out afterwards."""
    directive = Directive(
        pass_name,
        str(site.folder / "artifacts" / f"{name}.region"),
        switch=Switch("signpost") if known.marked else None,
        iterations=iterations,
        seconds=seconds,
    )
    tables = (*schemas, *REGION_TABLES)
    return instruments_step(site, xctrace, directive, name, tables, template=template, options=options)


def kept_facts(report: Report) -> dict[str, str]:
    """What decides whether two runs may be compared; the rest of the facts is the run's own, or a GPU's."""
    return {name: report.facts[name] for name in _KEPT if name in report.facts}


def of_region(report: Report) -> bool:
    """Whether only what lies in the region was read."""
    return "region" in report.facts
