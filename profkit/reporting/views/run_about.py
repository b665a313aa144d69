"""Around the numbers of a run: its passes, machine and conditions, files, what to type next, and its test cases."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from profkit.core.formatting import format_quantity, plural
from profkit.core.types import PassResult, RunDocument, Verdict, VerdictWord
from profkit.reporting.extras import Extras
from profkit.reporting.facts import fact_text
from profkit.reporting.forges import Case, Cases, CaseState
from profkit.reporting.view import (
    Block,
    Commands,
    Fold,
    Item,
    Items,
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
from profkit.reporting.views.run_insights import to_do_lines
from profkit.reporting.views.run_text import (
    WORDS,
    command_line,
    cost_text,
    gain_clause,
    gpu_lines,
    machine_line,
    scope_name,
    session_conditions,
    time_line,
    unfinished_passes,
)

_FACT = 64  # characters of a fact about the tool's session: longer ones are lists of metrics, and stand in run.json
_MOST_FILES = 500  # that are listed


# ---------------------------------------------------------------- passes


def passes_section(document: RunDocument, extras: Extras) -> Section | None:
    """What each pass took and how it ended, with the reason and the fix where it did not finish."""
    if not document.passes:
        return None
    rows: list[tuple[Text, ...]] = []
    for result in document.passes:
        files = joined(*between(", ", (_file(path, extras) for path in result.artifacts)))
        rows.append((result.name, result.tool or "-", result.state, cost_text(result), files))
    column_count = 5 if extras.files else 4
    columns = ("pass", "tool", "state", TableColumn("took", numeric=True), "files")[:column_count]
    blocks: list[Block] = [table(columns, [row[:column_count] for row in rows], words=5)]
    unfinished = unfinished_passes(document)
    alike: dict[tuple[object, ...], list[PassResult]] = {}
    for result in unfinished:
        alike.setdefault((result.state, result.reason, result.fix, result.log), []).append(result)
    if alike:
        blocks.append(Items(tuple(_trouble(results, extras) for results in alike.values())))
    finished = len(document.passes) - len(unfinished)
    headline = f"{finished} of {plural(len(document.passes), 'pass', 'passes')} finished."
    return Section("Passes", tuple(blocks), headline)


def _file(path: str, extras: Extras) -> Span:
    return Span(path, link=path if path in extras.paths else None)


def _trouble(results: Sequence[PassResult], extras: Extras) -> Item:
    """Passes that ended alike, for the same reason."""
    result, names = results[0], ", ".join(result.name for result in results)
    below: list[Text] = [joined("fix: ", code(result.fix))] if result.fix else []
    below += [joined("log: ", _file(result.log, extras))] if result.log else []
    reason = fact_text(result.reason) or "no reason is known"
    return Item(joined(strong(f"{names} {result.state}"), f": {reason}"), tuple(below))


# ---------------------------------------------------------------- conditions, and what a part of a recording tells


def conditions_section(document: RunDocument) -> Section | None:
    """What decides whether these numbers may be compared with others."""
    known = session_conditions(document)
    short = "; ".join(f"{name}: {value}" for name, value in known.items() if len(value) <= _FACT)
    return Section("Measured under", (Paragraph(soft(short)),)) if document.facts and short else None


NEEDED = (
    "for what it does not tell, export the other tables of the recording into one folder with it (docs/mps.md has the"
    " lines), and read that: profkit summarize FOLDER"
)


def what_it_tells(document: RunDocument) -> RunDocument:
    """Of one exported table alone what is known, and what else is needed in one note; any other document as it is."""
    if document.metal is None or not document.metal.alone:
        return document
    known = [one for one in document.summaries if any(reading.value is not None for reading in one.readings)]
    gpu = [one for one in document.summaries if one.concern == "gpu" and one not in known]
    return replace(
        document,
        verdicts=tuple(verdict for verdict in document.verdicts if verdict.verdict != "unknown"),
        summaries=(*gpu, *known),
        notes=(*document.notes, NEEDED),
    )


# ---------------------------------------------------------------- files


def files_section(extras: Extras) -> Section | None:
    """The files beside the page."""
    if not extras.files:
        return None
    items: list[Text] = [
        joined(Span(file.path, link=file.path), " ", soft(format_quantity(float(file.size), "B")))
        for file in extras.files[:_MOST_FILES]
    ]
    more = len(extras.files) - _MOST_FILES
    items += [f"{more} more."] if more > 0 else []
    total = format_quantity(float(sum(file.size for file in extras.files)), "B")
    headline = f"{plural(len(extras.files), 'file')} beside this page, {total}."
    return Section("Files", (Items(tuple(items)),), headline, Fold.REFERENCE)


def next_sections(document: RunDocument, folder: Path) -> Iterator[Section]:
    """Where the run's files are, and what to type next."""
    page = "report.html  " if (folder / "report.html").is_file() else ""
    lines: list[Block] = [
        Paragraph(str(folder)),
        Paragraph(soft(f"{page}report.md  run.json  artifacts/  logs/")),
    ]
    flame = next((a for p in document.passes for a in p.artifacts if a.endswith(".speedscope.json")), None)
    if flame is not None:
        lines.append(Paragraph(soft(f"{flame}: a flame graph, opens at speedscope.app")))
    yield Section("Files", tuple(lines))
    commands = [f"profkit summarize {shlex.quote(str(folder))}"]
    if document.state == "complete":
        commands.append(f"profkit compare {shlex.quote(str(folder))} LATER_RUN")
    if document.state in ("interrupted", "failed"):
        commands.append("profkit doctor")
    yield Section("Next", (Commands(tuple(commands)),))


# ---------------------------------------------------------------- test cases


def cases_of(document: RunDocument) -> Cases:
    """A case for every verdict on the run, its regions and functions, and one for every pass.

    A missed target is a failure; what is not known is unknown; a pass or a workload that failed is an error. A
    kernel's own verdict fails no run, so it is told in the output and is no case.
    """
    verdicts = [verdict for verdict in document.verdicts if verdict.scope.kind != "kernel"]
    regions = len({verdict.scope for verdict in verdicts if verdict.scope.kind == "region"})
    cases = [_verdict_case(document, verdict, regions) for verdict in verdicts]
    cases += [_pass_case(document, result) for result in document.passes]
    group = f"profkit.{document.name}"
    if document.state != "complete" or document.failure is not None:
        why = document.failure or f"the run is {document.state}: what it has is not all of it"
        cases.insert(0, Case(f"{group}.run", "workload", "error", why, kind=document.state))
    elif not document.verdicts:
        why = "nothing was judged: no target speaks of what is in it"
        cases.append(Case(f"{group}.targets", "any target", "skipped", why, kind="not-judged"))
    facts = {
        "command": command_line(document),
        "backend": document.backend,
        "started": document.started,
        "machine": machine_line(document) or "",
        "gpu": "; ".join(gpu_lines(document)),
        "time": time_line(document) or "",
    }
    facts |= {name: value for name, value in session_conditions(document).items() if name not in facts}
    return Cases(
        f"{document.name} on {document.backend}",
        tuple(cases),
        document.started,
        sum(result.seconds for result in document.passes),
        tuple((name, value) for name, value in facts.items() if value),
        "\n".join(_output(document)),
    )


def _verdict_case(document: RunDocument, verdict: Verdict, regions: int) -> Case:
    states: dict[VerdictWord, tuple[CaseState, str]] = {
        "pass": ("passed", ""),
        "fail": ("failure", "missed"),
        "unknown": ("unknown", "unknown"),
        "not-applicable": ("skipped", "not-applicable"),
    }
    scope = verdict.scope
    apart = scope.kind == "function" or (scope.name and regions > 1)
    group = f"profkit.{document.name}.targets" + (f".in.{scope_name(scope)}" if apart else "")
    state, kind = states[verdict.verdict]
    if state == "passed":
        return Case(group, verdict.target)
    why = fact_text(verdict.reason) + gain_clause(verdict)
    tries = verdict.advice if state != "skipped" else ()
    detail = "\n".join([why, *(f"try: {line}" for line in tries)])
    return Case(group, verdict.target, state, why, detail, kind=kind)


def _pass_case(document: RunDocument, result: PassResult) -> Case:
    states: dict[str, CaseState] = {"finished": "passed", "skipped": "skipped"}
    name = f"{result.name} ({result.tool})" if result.tool else result.name
    state = states.get(result.state, "error")
    why = "" if state == "passed" else fact_text(result.reason) or "no reason is known"
    lines = [why, f"fix: {result.fix}" if result.fix else "", f"log: {result.log}" if result.log else ""]
    detail = "\n".join(filter(None, lines))
    group = f"profkit.{document.name}.passes"
    return Case(group, name, state, why, detail, result.seconds, result.state)


def _output(document: RunDocument) -> Iterator[str]:
    for number, (what, why) in enumerate(to_do_lines(document), 1):
        yield from (["What to do first"] if number == 1 else [])
        yield f"{number}. {what} ({why})"
    for verdict in document.verdicts:
        if verdict.scope.kind == "kernel" and verdict.verdict == "fail":
            where = f"{verdict.target} in {scope_name(verdict.scope)}"
            yield f"{WORDS[verdict.verdict]} {where}: {fact_text(verdict.reason)}"
    if unfinished_passes(document):
        yield f"{len(unfinished_passes(document))} passes did not finish"
    yield from document.notes
