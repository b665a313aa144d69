"""One run as one page: what to do first, then everything that was found, in the order in which it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from profkit.core.types import RunDocument
from profkit.reporting.html import (
    distribution_part,
    files,
    flame_part,
    head,
    kernels,
    levels_part,
    machine,
    memory_part,
    metal_absent,
    metal_counters,
    metal_states,
    metal_use,
    metal_work,
    notes,
    numbers,
    occupancy_part,
    passes,
    python_part,
    roofline_part,
    time_part,
    verdicts,
)
from profkit.reporting.html.frame import page
from profkit.reporting.html.part import Extras, Part

# Every part by its maker, in the order of the page. A maker gives None where the run has nothing for it.
PARTS: tuple[Callable[[RunDocument, Extras], Part | None], ...] = (
    verdicts.part,
    metal_use.part,
    time_part.part,
    roofline_part.part,
    kernels.part,
    occupancy_part.part,
    metal_work.encoders,
    metal_work.shaders,
    metal_counters.part,
    levels_part.part,
    metal_states.part,
    distribution_part.part,
    flame_part.part,
    python_part.part,
    memory_part.part,
    metal_absent.part,
    numbers.part,
    passes.part,
    machine.part,
    notes.part,
    files.part,
)
STYLES = ("kernels.css", "charts.css")
SCRIPTS = ("kernels.js", "charts.js", "flame.js")


def render(document: RunDocument, extras: Extras | None = None) -> str:
    """The run as one self-contained HTML file, as text for UTF-8.

    Opens offline, without a script too, and makes no request. `extras` holds what run.json does not: the files of
    the run's folder, and stacks for flame graphs. Nothing is read or computed here that the document does not tell.
    """
    extras = extras if extras is not None else Extras()
    made = [part for part in (make(document, extras) for make in PARTS) if part is not None]
    return page(
        f"{document.name} on {document.backend}",
        made,
        head=head.head(document, extras),
        footnotes=extras.sources.footnotes,
        styles=STYLES,
        scripts=SCRIPTS,
    )
