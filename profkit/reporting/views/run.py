"""One run: its time, what to do first, the verdicts, charts and tables, every number, and what it was measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import format_quantity, format_utc_time, plural
from profkit.core.types import Fact, RunDocument, Verdict, VerdictWord
from profkit.reporting.facts import brief_reason, fact_text
from profkit.reporting.plain_text import reading_span
from profkit.reporting.view import (
    Block,
    Detail,
    FieldList,
    Fold,
    ItemList,
    Label,
    NotOnPage,
    PageOnly,
    Section,
    Status,
    Style,
    Text,
    View,
    between,
    code,
    joined,
    plain_text,
    strong,
)
from profkit.reporting.views import run_about
from profkit.reporting.views.run_about import Extras, flame_section, kernel_table, kernels_of
from profkit.reporting.views.run_account import account_rows_section, account_section
from profkit.reporting.views.run_insights import more_on_screen, spots_section, time_split_text, to_do_section
from profkit.reporting.views.run_memory import memory_section
from profkit.reporting.views.run_roofline import roofline_section
from profkit.reporting.views.run_text import (
    OUTCOMES,
    VERDICTS,
    command_line,
    gpu_lines,
    machine_line,
    passes_with_object,
    time_line,
    unfinished_passes,
)
from profkit.reporting.views.run_timeline import timeline_sections
from profkit.reporting.views.run_trials import trials_section
from profkit.reporting.views.run_verdicts import (
    fix_option,
    targets_section,
    verdicts_of_page,
)
from profkit.reporting.views.summaries import concern_sections
from profkit.runtime.passes.shown_command import shown_command

Concerns = Mapping[str, Section]  # by name
NamedTexts = Sequence[tuple[str, Text]]

_STATES = {
    "running": "This run goes on, or its process died: what was finished stands below.",
    "interrupted": "This run was interrupted: what was finished stands below.",
    "failed": "This run failed: what was finished stands below.",
}
_IN_SHORT = ("functions", "python", "trace", "memory")  # concerns whose headline a short screen has
_ABOVE = ("kernels", "gpu", "encoders")  # concerns with a section of their own
_WIDE = frozenset({"Time", "Passes", "Machine", "Started", "Commit"})
_REASONS = 2  # why targets are not known, in the first line
_NAMED = 3  # targets that are not known are named, up to so many
_NOTES = 4  # on a short screen
_PAGE_BYTES = 500_000  # what opens at once, also when it came by mail


def view(
    document: RunDocument,
    folder: Path | None = None,
    extras: Extras | None = None,
    *,
    verdicts: bool = False,
) -> View:
    """Return the run as blocks.

    `folder` is its folder, for the closing lines; `extras` is what run.json does not contain.

    With `verdicts` a short screen has them, too.
    """
    extras = extras if extras is not None else Extras()
    state = f" ({document.state})" if document.state != "complete" else ""
    warning: Text = _STATES.get(document.state, "")
    if document.failure is not None:
        warning = joined(strong("✗ Failed: ", Status.FAIL), document.failure)
    label, reason = _verdict(document.verdicts)
    concerns = concern_sections(document)
    facts = tuple(_facts(document, concerns))
    return View(
        (strong(document.name), f" on {document.facts.get('device', document.backend)}{state}"),
        tuple(filter(None, _blocks(document, concerns, folder, extras, verdicts=verdicts))),
        label,
        (reason,) if reason else (),
        facts=facts,
        wide=_wide_facts(document),
        below=_facts_below(document, facts),
        command=command_line(document),
        warning=warning,
        page_bytes=_PAGE_BYTES,
    )


def _facts(document: RunDocument, concerns: Concerns) -> Iterator[tuple[str, Text]]:
    part = _part_text(document)
    if part is not None:
        yield "Took", part
    of_region = bool(document.timings) and document.timings[0].kind == "region"
    split = time_split_text(document.time_split, of_region=of_region)
    if split is not None:
        yield "Split", split
    if (line := time_line(document)) is not None:
        readings = [r for s in document.summaries if s.concern == "time" for r in s.readings]
        median = next((r for r in readings if r.metric == "time.median" and r.value is not None), None)
        yield "Time", replace(reading_span(median, line, Style.STRONG), mark="") if median else strong(line)
    if document.hot_spots and "memory" in concerns and part is None:
        yield "Memory", concerns["memory"].headline
    if "gpu" in concerns:
        yield "GPU", strong(plain_text(concerns["gpu"].headline))
    if unfinished := unfinished_passes(document):
        of = len(passes_with_object(document))
        yield "Passes", f"{of - len(unfinished)} of {of} finished; the others are listed below"
    for line in gpu_lines(document):
        yield "Device", line
    if (machine := machine_line(document)) is not None:
        yield "Machine", machine
    if document.place is not None:
        yield "Place", document.place
    if document.started:
        yield "Started", format_utc_time(document.started)
    if (commit := _commit(document)) is not None:
        yield "Commit", commit


def _part_text(document: RunDocument) -> Text | None:
    """Return `938 ms; memory +122 MiB at its end, peak 215 MiB`, of a part of a program; None of a whole one."""
    known = {reading.metric: reading.value for reading in document.readings}
    added, calls = known.get("memory.rss_added"), document.facts.get("calls", "")
    if added is None and not calls.isdigit():
        return None
    seconds = sum(result.seconds for result in document.passes if result.name == "stacks")
    most = f"peak {format_quantity(known.get('memory.rss_peak'), 'B')}"
    if added is None:
        count = plural(int(calls), "call")
        each = f", {format_quantity(seconds / int(calls), 's')} each" if int(calls) > 1 else ""
        if "overlap" in document.facts:  # then the time over their number is not what one took
            each = ", some of them within or beside another"
        return joined(strong(format_quantity(seconds, "s")), f" in {count}{each}; memory {most}")
    grown = f"{'+' if added >= 0 else '-'}{format_quantity(abs(added), 'B')} at its end"
    return joined(strong(format_quantity(seconds, "s")), f"; memory {grown}, {most}")


def _wide_facts(document: RunDocument) -> frozenset[str]:
    """Return what a short screen leaves out beside hot spots; the split holds the time, where it is known."""
    if not document.hot_spots and _part_text(document) is None:
        return frozenset()
    return _WIDE if time_split_text(document.time_split) is not None else _WIDE - {"Time"}


def _facts_below(document: RunDocument, facts: NamedTexts) -> frozenset[str]:
    """Return what a page has below its answer; without an account the time is the answer."""
    account = document.account
    answers = {"Took"} if account is not None else {"Took", "Split", "Time", "GPU"}
    if account is not None and account.unit == "run":
        answers.add("Split")  # of a whole run the account's headline tells no time
    return frozenset(name for name, _ in facts) - answers


def _commit(document: RunDocument) -> str | None:
    """Return `1a2b3c4d5e6f on main, with changes that are not committed`, or None if the run does not record it."""
    revision = document.revision
    if revision is None:
        return None
    if revision.commit is None:
        if revision.reason is None:
            return None
        known = revision.reason.code in ("no-repository", "no-commit-yet")
        return fact_text(revision.reason) if known else f"not known: {fact_text(revision.reason)}"
    return revision.commit[:12] + (", with changes that are not committed" if revision.dirty else "")


def _verdict(verdicts: Sequence[Verdict]) -> tuple[Label | None, Text]:
    """Return `✗ 2 targets missed` of the run, and behind it which, how many others there are, and misses in its
    parts.
    """
    whole = [v for v in verdicts if v.scope.kind in ("run", "region")]
    by_word = {word: [v for v in whole if v.verdict == word] for word in VERDICTS}
    worst = next((word for word, group in by_word.items() if group), None)
    missed = {v.target for v in by_word["fail"]}
    inner = [v for v in verdicts if v not in whole and v.verdict == "fail" and v.target not in missed]
    parts: list[Text] = []
    if worst == "unknown" and len({v.target for v in by_word[worst]}) > _NAMED:
        parts += _why_unknown(by_word[worst])
    elif worst in ("fail", "unknown"):
        names = dict.fromkeys(v.target for v in by_word[worst])
        parts.append(joined(*between(", ", map(code, names))))
    rest = [f"{len(group)} {_outcome(word)}" for word, group in by_word.items() if group and word != worst]
    parts += [", ".join(rest)] if rest else []
    if inner:
        parts.append(f"{plural(len(inner), 'miss', 'misses')} in single {inner[0].scope.kind}s alone")
    reason = joined(*between("; ", (part for part in parts)))
    if worst is None:
        return (Label(Status.UNKNOWN, "no target on the whole run"), reason) if inner else (None, "")
    return Label(VERDICTS[worst].status, f"{plural(len(by_word[worst]), 'target')} {_outcome(worst)}"), reason


def _outcome(word: VerdictWord) -> str:
    """Return what a sentence says of targets with this verdict: `missed`, `could not be checked`."""
    return "could not be checked" if word == "unknown" else OUTCOMES[word]


def _why_unknown(verdicts: Sequence[Verdict]) -> Iterator[Text]:
    """Yield `no time left (8): --budget 37`: the two reasons that most of them have, each with its own fix.

    A reason that only one target has names it.
    """
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((brief_reason(verdict.reason), fix_option(verdict)), []).append(verdict)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:_REASONS]
    for (why, fix), alike in largest:
        if why:
            whose = f" ({len(alike) if len(alike) > 1 else alike[0].target})" if len(groups) > 1 else ""
            yield joined(f"{why}{whose}", *((": ", code(fix)) if fix else ()))


def _blocks(
    document: RunDocument, concerns: Concerns, folder: Path | None, extras: Extras, *, verdicts: bool
) -> Iterator[Block | None]:
    """Yield the answer, the numbers of the targets, pictures, then tables; a page has the large tables below the
    pictures.
    """
    kernels = kernels_of(document)
    account = account_section(document)
    yield account
    yield to_do_section(document)
    # Without a device the account is made of the same places.
    places = None if account is not None and document.trace is None else spots_section(document)
    tables = [table for table in (places, *_gpu_sections(document, concerns, kernels)) if table is not None]
    if account is not None:  # it has what they say, in table table
        tables = [Detail((table,)) for table in tables]
    yield NotOnPage(tuple(tables))
    yield trials_section(document)
    yield targets_section(document, verdicts=verdicts)
    yield from timeline_sections(document, extras)
    yield roofline_section(document)
    yield memory_section(document)
    yield from flame_section(extras)
    yield _page_facts(document, concerns)
    yield account_rows_section(document)
    yield PageOnly(tuple(tables))
    yield from verdicts_of_page(document)
    yield _all_numbers(concerns, placed=bool(document.hot_spots))
    if (unknown := concerns.get("unknown")) is not None:
        yield Detail((replace(unknown, fold=Fold.OPEN),))
    yield run_about.passes_section(document, extras)
    yield run_about.conditions_section(document)
    masked = shown_command(document.workload.command).masked
    notes = (*document.notes, *((Fact.of("masked-arguments", count=masked),) if masked else ()))
    if notes:
        yield Section("Notes", (ItemList(tuple(map(fact_text, notes)), brief=_NOTES),))
    if folder is not None:
        yield from run_about.next_sections(document, folder)
    if not document.hot_spots:
        yield more_on_screen(document)
    yield run_about.cases_of(document)


def _page_facts(document: RunDocument, concerns: Concerns) -> PageOnly | None:
    """Return what was profiled, of a page: every other format has it at its head."""
    facts = tuple(_facts(document, concerns))
    below = _facts_below(document, facts)
    rows = tuple(fact for fact in facts if fact[0] in below)
    return PageOnly((Section("What was profiled", (FieldList(rows),), anchor="profiled"),)) if rows else None


# ---------------------------------------------------------------- concerns


def _gpu_sections(document: RunDocument, concerns: Concerns, kernels: Sequence[KernelRow]) -> Iterator[Block]:
    """Yield what a reader of a GPU's run looks at first: its kernels or encoders; then its time line."""
    if kernels and "kernels" in concerns:  # a backend may have no summary of them
        top = concerns["kernels"]
        first, *others = top.blocks
        body = kernel_table(document, kernels, (first, Detail(tuple(others))))
        yield Section("Kernels", (body,), top.headline)
    if "encoders" in concerns:
        yield replace(concerns["encoders"], fold=Fold.OPEN, anchor="summary-encoders")
    if "gpu" in concerns:  # without its headline, which is in the head of the view
        yield Detail((replace(concerns["gpu"], headline="", fold=Fold.OPEN, anchor="summary-gpu"),))


def _all_numbers(concerns: Concerns, *, placed: bool) -> Section | None:
    """Return every concern in a line, with its tables and notes; none on a short screen where hot spots are
    `placed`.
    """
    short = () if placed else _IN_SHORT
    blocks = tuple(
        section if concern in short else Detail((section,))
        for concern, section in concerns.items()
        if concern not in (*_ABOVE, "unknown")
    )
    return Section("All numbers", blocks, anchor="numbers") if blocks else None
