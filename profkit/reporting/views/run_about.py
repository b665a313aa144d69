"""Parts of a run's page: its passes, conditions, what to type next, test cases, kernels and flame graphs."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.kernel_names import shape
from profkit.analysis.stacks.files import flame_of, read_speedscope, without_notebook
from profkit.analysis.stacks.merge import PYTHON, is_python
from profkit.analysis.stacks.wall_time import THREAD, WAIT, is_wall_time
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.backends import backend_named
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import plural
from profkit.core.types import Frame, PassResult, RunDocument, Stacks
from profkit.reporting.charts.marks import FlameGraph
from profkit.reporting.columns import SortableTable, sortable_table
from profkit.reporting.facts import brief_reason, fact_text
from profkit.reporting.forges import Case, CaseList, verdict_case
from profkit.reporting.view import (
    Block,
    CaseState,
    Commands,
    Detail,
    Fold,
    Item,
    ItemList,
    Paragraph,
    Section,
    Span,
    TableColumn,
    Text,
    between,
    code,
    joined,
    soft,
    strong,
    table,
)
from profkit.reporting.views.run_text import (
    command_line,
    cost_text,
    gpu_lines,
    machine_line,
    passes_with_object,
    session_conditions,
    time_line,
    unfinished_passes,
)
from profkit.reporting.views.summaries.kernels import kernel_columns

_FACT = 64  # characters of a fact about the tool's session: longer ones are lists of metrics, and stand in run.json


# ---------------------------------------------------------------- passes


def passes_section(document: RunDocument, extras: Extras) -> Block | None:
    """Return what each pass took and how it ended, with the reason and the fix where it did not finish."""
    if not document.passes:
        return None
    rows: list[tuple[Text, ...]] = []
    for result in document.passes:
        files = joined(*between(", ", (_file(path, extras) for path in result.artifacts)))
        rows.append((result.name, result.tool or "-", result.state, cost_text(result), files))
    column_count = 5 if extras.folder is not None else 4
    columns = ("pass", "tool", "state", TableColumn("took", numeric=True), "files")[:column_count]
    blocks: list[Block] = [Detail((table(columns, [row[:column_count] for row in rows], words=5),))]
    unfinished = unfinished_passes(document)
    alike: dict[tuple[object, ...], list[PassResult]] = {}
    for result in unfinished:
        alike.setdefault((result.state, result.reason, result.fix, result.log), []).append(result)
    if alike:
        items = tuple(_trouble(results, extras) for results in alike.values())
        failed = any(result.state == "failed" for result in unfinished)
        texts = ", ".join(dict.fromkeys(map(_unfinished_text, unfinished)))
        brief = Paragraph(soft(f"Not finished: {texts}. More: report.md"))
        blocks.append(ItemList(items) if failed else Detail((ItemList(items),), (brief,)))
    of = len(passes_with_object(document))
    headline = f"{of - len(unfinished)} of {plural(of, 'pass', 'passes')} finished."
    section = Section("Passes", tuple(blocks), headline)
    return section if unfinished else Detail((section,))


def _unfinished_text(result: PassResult) -> str:
    """Return `tracemalloc (no time left: --budget 27)`: a pass, why it did not finish, and what lets it run."""
    why = brief_reason(result.reason)
    option = result.fix if result.fix and result.fix.startswith("--") else None
    known = ": ".join(part for part in (why, option) if part)
    return f"{result.name} ({known})" if known else result.name


def _file(path: str, extras: Extras) -> Span:
    return Span(path, link=path if extras.has(path) else None)


def _trouble(results: Sequence[PassResult], extras: Extras) -> Item:
    """Return the passes that ended in the same way, for the same reason, as one row."""
    result, names = results[0], ", ".join(result.name for result in results)
    below: list[Text] = [joined("fix: ", code(result.fix))] if result.fix else []
    below += [joined("log: ", _file(result.log, extras))] if result.log else []
    reason = fact_text(result.reason) or "no reason is known"
    return Item(joined(strong(f"{names} {result.state}"), f": {reason}"), tuple(below))


# ---------------------------------------------------------------- conditions


def conditions_section(document: RunDocument) -> Block | None:
    """Return the conditions that decide whether these numbers may be compared with others, without those in notes."""
    noted = {fact_text(note) for note in document.notes}
    facts = [
        f"{name}: {value}" for name, value in session_conditions(document).items() if len(value) <= _FACT
    ]
    short = "; ".join(fact for fact in facts if fact not in noted)
    known = bool(document.facts and short)
    return Detail((Section("Measured under", (Paragraph(soft(short)),)),)) if known else None


# ---------------------------------------------------------------- what comes next


def next_sections(document: RunDocument, folder: Path) -> Iterator[Section]:
    """Yield where the run's files are, and what to type next."""
    page = "report.html  " if (folder / "report.html").is_file() else ""
    lines: list[Block] = [
        Paragraph(str(folder)),
        Paragraph(soft(f"{page}report.md  run.json  artifacts/  logs/")),
    ]
    flame = next((a for p in document.passes for a in p.artifacts if a.endswith(".speedscope.json")), None)
    if flame is not None:
        lines.append(Detail((Paragraph(soft(f"{flame}: a flame graph, opens at speedscope.app")),)))
    yield Section("Files", tuple(lines))
    name = shlex.quote(str(folder))
    commands = [f"profkit summarize {name}"]
    if document.verdicts:
        commands.append(f"profkit check {name}")
    if document.state == "complete":
        commands.append(f"profkit compare {name} LATER_RUN")
    if document.state in ("interrupted", "failed"):
        commands.append("profkit doctor")
    yield Section("Next", (Commands(tuple(commands)),))


# ---------------------------------------------------------------- test cases


def cases_of(document: RunDocument) -> CaseList:
    """Return a test case for every verdict on the run, its regions and functions, and one for every pass.

    A pass or a workload that failed is an error. A kernel's own verdict fails no run, and is no case.
    """
    group = f"profkit.{document.name}"
    verdicts = [verdict for verdict in document.verdicts if verdict.scope.kind != "kernel"]
    cases = [verdict_case(f"{group}.targets", verdict) for verdict in verdicts]
    cases += [_pass_case(f"{group}.passes", result) for result in document.passes]
    if document.state != "complete" or document.failure is not None:
        why = document.failure or f"the run is {document.state}: what it has is not all of it"
        cases.insert(0, Case(f"{group}.run", "workload", "error", why, kind=document.state))
    elif not document.verdicts:
        why = "nothing was judged: no target speaks of what is in it"
        cases.append(Case(f"{group}.targets", "any target", "skipped", why, kind="not-judged"))
    facts = {
        "command": command_line(document),
        "machine": machine_line(document) or "",
        "gpu": "; ".join(gpu_lines(document)),
        "time": time_line(document) or "",
        **session_conditions(document),
    }
    seconds = sum(result.seconds for result in document.passes)
    known = tuple((name, value) for name, value in facts.items() if value)
    name = f"{document.name} on {document.backend}"
    return CaseList(
        name, tuple(cases), document.started, seconds, known, "\n".join(map(fact_text, document.notes))
    )


def _pass_case(group: str, result: PassResult) -> Case:
    states: dict[str, CaseState] = {"finished": "passed", "skipped": "skipped"}
    name = f"{result.name} ({result.tool})" if result.tool else result.name
    state = states.get(result.state, "error")
    why = "" if state == "passed" else fact_text(result.reason) or "no reason is known"
    lines = [why, f"fix: {result.fix}" if result.fix else "", f"log: {result.log}" if result.log else ""]
    return Case(group, name, state, why, "\n".join(filter(None, lines)), result.seconds, result.state)


_MAX_KERNELS = 300  # on a page, which is to stay below 500 kB; the smaller ones are in run.json
_NAME = 1000  # characters of a whole name: longer ones, which somebody made, are cut


def kernels_of(document: RunDocument) -> tuple[KernelRow, ...]:
    """Return the rows of a GPU's kernels, largest first; none for an Apple GPU, whose encoders are not launches."""
    metal = document.metal is not None or backend_named(document.backend).work == "encoder"
    return () if metal else kernel_rows(document)


def kernel_table(
    document: RunDocument, kernels: Sequence[KernelRow], otherwise: Sequence[Block]
) -> SortableTable:
    """Return the table of all kernels; `otherwise` is what formats without scripts show."""
    return sortable_table(
        "Kernels by launch configuration",
        kernel_columns(document),
        kernels,
        [
            f"{row.scope.name or '?'}"[:_NAME] + f" {shape(row.scope.id) if row.scope.id else ''}"
            for row in kernels
        ],
        note="A name tells the whole one where the pointer rests.",
        reference=tuple(otherwise),
        most=_MAX_KERNELS,
        seconds=[row.time.total if row.time is not None else 0.0 for row in kernels],
    )


_OF_PERF = "artifacts/trace.speedscope.json"
_FLAMES = 3  # sampled events that are drawn


def flame_section(extras: Extras) -> Iterator[Section]:
    """Yield one flame graph of wall time, else those of what was sampled; nothing without samples.

    Native stacks of another run cannot be put below Python's: they stand folded beneath.
    """
    wall = [sampled_stacks for sampled_stacks in extras.stacks if is_wall_time(sampled_stacks)]
    deep = [
        sampled_stacks
        for sampled_stacks in extras.stacks
        if not is_wall_time(sampled_stacks) and not any(map(_has_python, sampled_stacks.weights))
    ]
    if wall and not any(map(_has_python, wall[0].weights)):
        deep = []  # of the same recording: the wall time has them, and what waits beside them
    chosen, native = (wall[:1], deep) if wall else (list(extras.stacks[:_FLAMES]), [])
    graphs = _flame_graphs(chosen)
    if not graphs:
        return
    blocks: list[Block] = [*graphs]
    if wall:
        blocks.append(Paragraph(_joined_note(wall[0], extras)))
    if below := _flame_graphs(native[:_FLAMES]):
        why = "With native callers; of another recording, whose samples belong to no stack of Python's."
        blocks.append(Section("Native code alone", tuple(below), why, Fold.FOLDED))
    yield Section("Flame graph", tuple(blocks), anchor="flame-graph", repeats=True)


def _flame_graphs(chosen: Iterable[Stacks]) -> list[FlameGraph]:
    flames = (flame_of(without_notebook(stacks)) for stacks in chosen)
    return [FlameGraph(flame) for flame in flames if flame is not None]


def _has_python(frames: Sequence[Frame]) -> bool:
    return any(map(is_python, frames))


def _joined_note(wall: Stacks, extras: Extras) -> Text:
    """Return whether native code is in it, and the file for other viewers."""
    if not any(map(_has_python, wall.weights)):
        known, place = "How long each thread ran and waited is counted; samples say where.", _OF_PERF
        if not extras.has(place):
            return soft(known)
        return joined(soft(f"{known} For speedscope.app: "), Span(place, link=place), soft("."))
    inner = {frame.library for frames in wall.weights for frame in frames} - {THREAD, WAIT, PYTHON, None}
    known = (
        "Native functions are those in which a thread was seen at the time of its stack of Python."
        if inner
        else "Native code below Python is not in it: it was not sampled in the same run."
    )
    place = "artifacts/stacks.speedscope.json"
    if not extras.has(place):
        return soft(known)
    return joined(
        soft(f"{known} With all of its frames, for speedscope.app: "), Span(place, link=place), soft(".")
    )


PAGE = "report.html"


@dataclass(frozen=True)
class Extras:
    """All of it may be missing: a page is made of what is there."""

    folder: Path | None = None  # where the page will lie: it links to the files that are there
    stacks: tuple[Stacks, ...] = ()  # for flame graphs: Python's, then native; the fullest first

    def has(self, path: str) -> bool:
        """Return whether the file lies beside the page."""
        try:
            inside = not path.startswith("/") and ".." not in path.split("/")  # the document may be another's
            return self.folder is not None and inside and (self.folder / path).is_file()
        except (OSError, ValueError):
            return False


def read_extras(folder: Path | None) -> Extras:
    """Return the extras of the run in `folder`; none if it is None or cannot be read. Never raises."""
    if folder is None:
        return Extras()
    stacks: list[Stacks] = []
    for name in ("stacks", "trace"):
        with contextlib.suppress(UnreadableReport):
            sampled = read_speedscope(folder / "artifacts" / f"{name}.speedscope.json")
            stacks += sorted(sampled, key=lambda sampled_stacks: -len(sampled_stacks.weights))
    return Extras(folder, tuple(stacks))
