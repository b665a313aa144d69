"""For whoever checks a number of a GPU's run: whole kernel names, conditions, and the counters behind each metric."""

from __future__ import annotations

from profkit.analysis.metrics import metric
from profkit.backends import backend_named
from profkit.core.formatting import plural
from profkit.core.types import Reading, RunDocument, Scope
from profkit.reporting.markdown_text import code, escaped, folded, grid_of
from profkit.reporting.order import conditions, named

KERNELS = 50  # whole names that are shown, those with the largest share of the GPU time
NAME = 4000  # characters of a whole name: longer ones, which somebody made, are cut


def kernel_details(document: RunDocument) -> list[str]:
    """Three folded tables; nothing where the document knows no kernels and no conditions."""
    return [part for part in (_names(document), _conditions(document), _sources(document)) if part]


def _names(document: RunDocument) -> str:
    if backend_named(document.backend).work == "encoder":
        return ""  # encoders have a table of their own, and no grid
    scopes = [one.kernel.scope for one in document.trace.kernels] if document.trace is not None else []
    scopes += [reading.scope for reading in document.readings if reading.scope.kind == "kernel"]
    known = list(dict.fromkeys(scopes))
    rows = [_cells(named(scope), (scope.name or "")[:NAME], scope.id or "-") for scope in known[:KERNELS]]
    if not rows:
        return ""
    more = len(known) - KERNELS
    rest = f"\n\nand {plural(more, 'further configuration')}: they stand in run.json" if more > 0 else ""
    return folded(
        "Whole names of the kernels", grid_of(("kernel", "whole name", "grid of block"), rows) + rest
    )


def _conditions(document: RunDocument) -> str:
    told = conditions(document) if document.facts else {}
    if not told:
        return ""
    return folded("Measured under", grid_of(("what", "value"), [_cells(*pair) for pair in told.items()]))


def _sources(document: RunDocument) -> str:
    """One row for each way in which a metric of a kernel came about."""
    ways: dict[tuple[str, ...], list[Scope]] = {}
    for reading in document.readings:
        if reading.scope.kind == "kernel" and reading.value is not None:
            ways.setdefault(_way(reading), []).append(reading.scope)
    if not ways:
        return ""
    counted = len({scope for scopes in ways.values() for scope in scopes})
    rows = [
        (
            *_cells(metric(way[0]).title),
            *(_span(text) for text in way[1:]),
            f"{len(set(scopes))} of {counted}",
        )
        for way, scopes in ways.items()
    ]
    columns = ("metric", "formula", "counters", "file", "kernels")
    return folded("Where each number of a kernel comes from", grid_of(columns, rows))


def _way(reading: Reading) -> tuple[str, ...]:
    source = reading.source
    return reading.metric, source.formula or "-", source.counter or "-", source.artifact or source.tool


def _cells(*texts: str) -> tuple[str, ...]:
    return tuple(escaped(text) for text in texts)


def _span(text: str) -> str:
    """A code span that may stand in a table: there a bar ends the cell, even inside of a span."""
    return code(text).replace("|", "\\|") if text != "-" else "-"
