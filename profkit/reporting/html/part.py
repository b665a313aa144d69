"""What a page is made of: parts in order, what they are made from, and where each of their numbers comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.backends import backend_named
from profkit.core.types import Json, RunDocument, Stacks
from profkit.reporting.html.sources import Sources
from profkit.runtime.passes.read_tracemalloc import Allocations


@dataclass(frozen=True)
class RunFile:
    """One file of a run: its path relative to the run's folder, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class Extras:
    """What a page shows that run.json does not hold. All of it may be missing: a page is made of what is there."""

    files: tuple[RunFile, ...] = ()
    stacks: tuple[Stacks, ...] = ()  # for flame graphs
    allocations: Allocations | None = None  # what tracemalloc saw, line by line
    sources: Sources = field(default_factory=Sources)  # grows while the parts are made; one for each page
    _rows: list[tuple[RunDocument, tuple[KernelRow, ...]]] = field(default_factory=list, repr=False)

    def kernels(self, document: RunDocument) -> tuple[KernelRow, ...]:
        """`kernel_rows` of the document, made once for all parts: of 10,000 kernels that takes seconds.

        None of an Apple GPU: its encoders are no launch configurations, and have parts of their own.
        """
        if self.of_metal(document):
            return ()
        if not self._rows or self._rows[0][0] is not document:
            self._rows[:] = [(document, kernel_rows(document))]
        return self._rows[0][1]

    def of_metal(self, document: RunDocument) -> bool:
        """Whether this is the page of an Apple GPU, whose counters and encoders have parts of their own."""
        return document.metal is not None or backend_named(document.backend).work == "encoder"

    @property
    def paths(self) -> frozenset[str]:
        """The files that the page may link to."""
        return frozenset(one.path for one in self.files)


@dataclass(frozen=True)
class Part:
    """One section of a page.

    `html` is finished: whatever came from outside went through `escape.text`. It holds no `style` attribute, no event
    handler, no link to anywhere but `#...` and files beside the page: the page's policy forbids the first two.
    Colours and sizes come from the classes of `style.css`, or in SVG from attributes (`width`, `d`, `class`).
    """

    id: str  # of the section, for links: letters, digits and dashes
    title: str
    html: str
    headline: str | None = None  # one sentence below the title, as plain text
    folded: bool = False  # opens at a click; always open in print
    data: Mapping[str, Json] = field(
        default_factory=dict
    )  # id of a script element -> what it holds, for scripts
