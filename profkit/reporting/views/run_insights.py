"""What to do, and where the time goes: the insights of a run, what to measure next, and its hot spots."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from profkit.analysis.function_names import (
    brief_name,
    called_name,
    is_internal,
    name_in_file,
    place_name,
    read_attribute,
)
from profkit.analysis.hot_spots import DOES, RUNS_CODE
from profkit.analysis.judge.rules.gpu.lines import waiting_lines
from profkit.analysis.kernel_names import short_name
from profkit.analysis.kernel_names.owner import is_initialiser
from profkit.analysis.stacks.python_code import IMPORT_SYSTEM, MODULE, module_name
from profkit.analysis.summaries.kernels import counted_alone
from profkit.backends import backend_named
from profkit.core.formatting import cut_right, format_percent, format_quantity, percent_text, plural
from profkit.core.types import CodeLine, CodeSpot, Fact, Gain, Insight, Place, RunDocument, TimeSplit, Verdict
from profkit.reporting.columns import Column, data_table
from profkit.reporting.facts import note_text
from profkit.reporting.view import (
    Block,
    Detail,
    Item,
    ItemList,
    Paragraph,
    Section,
    Status,
    Text,
    between,
    code,
    command,
    joined,
    soft,
    strong,
)
from profkit.reporting.views.run_text import actions
from profkit.runtime.passes.shown_command import line_to_type

BRIEF = 3  # of them on a short screen
_NAME = 44  # characters of a kernel's name
_COMMAND = 48  # characters of a command that stands in a line to type; a longer one is COMMAND
_MAX_NAMED = 4  # targets that are named
_MIN_MET = 3  # met targets: fewer are too little to say that nothing is wrong
INITIALISERS = (
    "The counted kernels are PyTorch's initialisers, which fill tensors with random numbers:"
    " set-up, and not your work."
)
_OPENED = 0.1  # of the time: a row that is opened to what the called library spends it in
_INNER = 28  # characters of a name in the narrow column
_NAMED = 3  # of the kernels that share an insight


@dataclass(frozen=True)
class JoinedInsight:
    """What one rule says of one or several kernels or places: the first, and what is won with all of them."""

    insight: Insight
    others: tuple[Insight, ...] = ()

    @property
    def gain(self) -> Gain | None:
        """Return the most that can be won with all of them: shares of the time of different kernels or places."""
        gain = self.insight.gain
        if gain is None:
            return None
        total = sum(
            insight.gain.at_most for insight in (self.insight, *self.others) if insight.gain is not None
        )
        return replace(gain, at_most=min(1.0, total))


def join_insights(insights: Sequence[Insight]) -> list[JoinedInsight]:
    """Return profkit's insights in their order; findings of a rule on several kernels are one, with the sum.

    So is the same advice at several places, as the first of them.
    """
    groups: dict[tuple[object, ...], list[Insight]] = {}
    for number, insight in enumerate(insights):
        if insight.source == "profkit":
            groups.setdefault(_same_advice(insight) or (number,), []).append(insight)
    together = [JoinedInsight(same[0], tuple(same[1:])) for same in groups.values()]
    if not any(joined_insight.insight.where.kernel for joined_insight in together):
        return together
    return sorted(
        together,
        key=lambda joined_insight: -(joined_insight.gain.at_most if joined_insight.gain is not None else 0.0),
    )


def _same_advice(insight: Insight) -> tuple[object, ...] | None:
    """Return a key that is equal for insights which the screen shows as one; None for an insight that is never joined.

    A place without a bound may be the same as another one, so the gain of both together is not known.
    """
    unit = insight.gain.of if insight.gain is not None else None
    if insight.where.kernel is not None:
        return insight.rule, insight.title, unit
    if insight.where.file is None or unit is None:
        return None
    return insight.rule, insight.title, insight.change, unit


def answer_text(insight: Insight, folder: str) -> str:
    """Return an insight in a line: `seen is a list of 16,000: do not search it each time (work.py:10, 93 %)`."""
    place = insight.where
    parts = [f"{relative_path(place.file, folder)}:{place.line}"] if place.file and place.line else []
    parts += [percent_text(100 * insight.gain.at_most)] if insight.gain is not None else []
    return insight.title + (f" ({', '.join(parts)})" if parts else "")


def insight_items(document: RunDocument) -> ItemList | None:
    """Return the findings as a numbered list; None without any.

    On a short screen the first has its reasons, and the others only their places.
    """
    found = shown_findings(document)
    items = tuple(
        _item(joined_insight, document.workload.folder, first=joined_insight is found[0])
        for joined_insight in found
    )
    return ItemList(items, ordered=True, brief=BRIEF) if items else None


def shown_findings(document: RunDocument) -> list[JoinedInsight]:
    """Return the findings as they are listed, so that the first has the number 1."""
    # A place alone is a row of the account; it is no change.
    return join_insights(
        [insight for insight in document.insights if insight.rule != "hot-spot" or document.account is None]
    )


def explained_targets(document: RunDocument) -> dict[str, int]:
    """Return the number of the first finding that explains each missed target."""
    numbers: dict[str, int] = {}
    for number, found in enumerate(shown_findings(document), 1):
        for insight in (found.insight, *found.others):
            for target in insight.targets:
                numbers.setdefault(target, number)
    return numbers


def _item(joined_insight: JoinedInsight, folder: str, *, first: bool) -> Item:
    insight = joined_insight.insight
    brief: tuple[Text, ...] = ()
    below: list[Text] = [joined(soft("why    "), f"{evidence_text(insight)}.")]
    if joined_insight.others:
        below.append(joined(soft("also   "), _others_text(joined_insight.others, folder)))
    if (place := place_text(insight, folder)) is not None:
        below.append(joined(soft("where  "), place))
        brief = (below[-1],)
    below.append(joined(soft("how    "), insight.change))
    if insight.gain is not None and insight.gain.bound and not insight.gain.tried:
        below.append(joined(soft("bound  "), f"{insight.gain.bound}."))
    text = joined(strong(insight.title), gain_text(joined_insight.gain))
    return Item(text, tuple(below), None if first else brief, place or "")


def _others_text(others: Sequence[Insight], folder: str) -> Text:
    """Return `sgemm_b (3.4 %), sgemm_c (1.2 %) and 2 more kernels`, each with the most that can be won."""
    named = [
        joined(
            code(_other_label(other, folder)),
            f" ({format_percent(100 * other.gain.at_most)} %)" if other.gain is not None else "",
        )
        for other in others[:_NAMED]
    ]
    left = len(others) - len(named)
    kind = "kernel" if others[0].where.kernel is not None else "place"
    more = f" and {plural(left, f'more {kind}', f'more {kind}s')}" if left else ""
    return joined(*between(", ", named), more)


def _other_label(insight: Insight, folder: str) -> str:
    return _kernel_label(insight) if insight.where.kernel is not None else where_text(insight.where, folder)


def time_split_text(split: TimeSplit | None, *, of_region: bool = False) -> str | None:
    """Return `3.59 s: waiting 62 %, working 38 % on 1.0 thread; start-up 1.2 s`; None where nothing was looked at.

    `of_region`: the program enters its region as it likes, so that what is outside of it is no start-up alone.
    """
    if split is None or split.waiting is None or split.wall <= 0:
        return None
    waiting, queued = split.waiting / split.wall, (split.queued or 0.0) / split.wall
    parts = [f"waiting {format_percent(100 * waiting)} %"] if waiting >= 0.005 else []
    if queued >= 0.02:
        parts.append(
            f"waiting for a free processor {format_percent(100 * queued)} % (other programs were running)"
        )
    if waiting + queued < 0.995:
        threads = f" with {split.threads:.1f} threads" if split.threads is not None else ""
        parts.append(f"working {format_percent(100 * (1 - waiting - queued))} %{threads}")
    what = "outside the region" if of_region else "start-up"
    start = f"; {what} {format_quantity(split.startup, 's')}" if split.startup is not None else ""
    if split.repeats and split.steady:
        step = format_quantity(split.steady / split.repeats, "s")
        start += f", then a step of {step} {split.repeats} times"
    if split.loops:
        start += f"; {format_quantity(split.loops, 's')} in another loop"
    if split.untraced:
        start += f"; {format_quantity(split.untraced, 's')} after that not traced"
    return f"{format_quantity(split.wall, 's')}: {', '.join(parts)}{start}"


def gain_text(gain: Gain | None) -> Text:
    """Return ` - could save up to 37 % of the GPU time`; empty where no bound is known."""
    if gain is not None and gain.tried:
        return f" - tried: {gain.bound}"
    if gain is None:
        return ""
    return f" - could save up to {percent_text(100 * gain.at_most)} of {gain.of}"


def evidence_text(insight: Insight) -> str:
    """Return `softmax_kernel (45 % of the GPU time): 12 % of ...`: the kernel with its share, where it is about one."""
    place = insight.where
    if place.label is None:
        return insight.evidence
    share = f" ({percent_text(100 * place.share)} of the GPU time)" if place.share is not None else ""
    return f"{place.label}{share}: {insight.evidence}"


def place_text(insight: Insight, folder: str = "") -> Text | None:
    """Return `at train.py:12 in step, aten::mm [64, 32] x [32, 8]`; None where all that is known stands in the
    evidence.

    Where no line is known the kernel is named, unless that stands before the evidence.
    """
    place = insight.where
    parts: list[Text] = []
    if place.file is not None:
        file = relative_path(place.file, folder)
        parts.append(joined("at ", code(file if place.line is None else f"{file}:{place.line}")))
    if place.function not in (None, MODULE):
        parts.append(joined("in ", code(place_name(place))))
    if place.operation is not None:
        operation = code(place.operation)
        parts[-1:] = [joined(parts[-1], ", ", operation) if parts else operation]
    if place.kernel is not None and place.line is None and place.label is None:
        parts.append(joined("in the kernel ", code(_kernel_label(insight))))
    return joined(*between(" ", parts)) if parts else None


def _kernel_label(insight: Insight) -> str:
    """Return the kernel as the tables call it; by its name alone where a rule speaks of all its configurations."""
    return insight.where.label or short_name(insight.where.kernel or "?", _NAME)


def relative_path(file: str, folder: str) -> str:
    """Return the file as seen from the workload's folder, or from the current one; unchanged if it is in neither."""
    file = file.replace("/./", "/")  # of `python ./train.py`
    for base in (folder, os.getcwd()):
        if base and file.startswith(base.rstrip("/") + "/"):
            return file[len(base.rstrip("/")) + 1 :]
    return file


# ---------------------------------------------------------------- the first section, and the last one


def to_do_section(document: RunDocument) -> Section | None:
    """Return the insights, or what missed targets say; else that nothing was found, if enough was looked at.

    Below stands what a further measurement would tell. A screen has that at its end: see `more_on_screen`.
    """
    blocks: list[Block] = []
    count = 0
    items = insight_items(document)
    alone = counted_alone(document)
    if alone:
        blocks.append(Paragraph(_missing_trace_text(document)))
    if only_initialisers(document):
        blocks.append(Paragraph(INITIALISERS))
    elif items is not None:
        count = len(items.items)
        blocks.append(items)
    elif alone:
        pass
    elif not document.sampled and (rows := actions(document)):
        count = len(rows)
        done = (Item(strong(row.what), (f"{Status.FAIL.sign} {row.why}",)) for row in rows)
        blocks.append(ItemList(tuple(done), ordered=True))
    elif (sentence := nothing_text(document)) is not None:
        blocks.append(Paragraph(sentence))
    title = "What to do first" if count > 1 else "What to do"
    if (more := more_text(document)) is not None:
        blocks.append(Detail((Paragraph(more),)))
    return Section(title, tuple(blocks), anchor="actions") if blocks else None


def _missing_trace_text(document: RunDocument) -> str:
    """Return why nothing is concluded from what was counted, and what gives a trace."""
    lost = next(
        (result for result in document.passes if result.name == "trace" and result.state != "finished"), None
    )
    notes = [Fact("counted-alone")]
    if lost is not None:
        notes.insert(0, Fact.of(f"pass-{lost.state}", *filter(None, [lost.reason]), name=lost.name))
    fix = f" Fix: {lost.fix}" if lost is not None and lost.fix else ""
    return " ".join(map(note_text, notes)) + fix


def more_on_screen(document: RunDocument) -> Detail | None:
    """Return the line on further measurements as the last one of a screen."""
    more = more_text(document)
    return Detail((), (Paragraph(""), Paragraph(more))) if more is not None else None


def only_initialisers(document: RunDocument) -> bool:
    """Return whether all kernels of a document are set-up: nothing follows from their values."""
    kernels = document.kernels
    return bool(kernels) and all(is_initialiser(kernel.scope.name or "") for kernel in kernels)


# ---------------------------------------------------------------- nothing was found


def nothing_text(document: RunDocument) -> str | None:
    """Say that no problem was found, and what was checked; None if that was too little to say so."""
    whole = [verdict for verdict in document.verdicts if verdict.scope.kind in ("run", "region")]
    words = [verdict.verdict for verdict in whole if verdict.metric != "time.interval"]
    met = words.count("pass")
    if document.state != "complete" or "fail" in words or "unknown" in words or met < _MIN_MET:
        return None
    return f"No problems found: all {met} targets that apply are met."


# ---------------------------------------------------------------- what a further measurement would tell


def more_text(document: RunDocument) -> Text | None:
    """Return `To know more (coalescing, spills): profkit profile --depth full -- COMMAND`; None where nothing is
    missing.

    The line is the one that answers the most open questions.
    """
    if only_initialisers(document):
        mark = "or mark the part that counts: with profkit.region(NAME)"
        other = backend_named(document.backend).tool_lines.count_other or "another part of the program"
        return joined(strong("To know more"), f" (the kernels that do the work): {other}; {mark}")
    if (function := _without_lines(document)) is not None:
        return joined(
            strong("To know more"),
            f" (the lines in {cut_right(function, _CALLED)}): compile with ",
            code("-g"),
            " beside the optimisation, which costs no time",
        )
    groups: dict[Text, list[str]] = {}
    for verdict in document.verdicts:
        if verdict.verdict == "unknown" and verdict.scope.kind in ("run", "region"):
            line = _line_for(document, verdict)
            if line is not None:
                groups.setdefault(line, []).append(verdict.target)
    if not groups:
        return None
    line = max(groups, key=lambda place: len(groups[place]))
    tells = tuple(dict.fromkeys(groups[line]))
    left = len(tells) - _MAX_NAMED
    named = ", ".join(tells[:_MAX_NAMED]) + (f" and {left} more" if left > 0 else "")
    return joined(strong("To know more"), f" ({named}): ", line)


def _without_lines(document: RunDocument) -> str | None:
    """Return the function of machine code that has most of the time and no line; None where the largest place has one.

    Samples of a function are of its lines where its compiler was asked for them.
    """
    if not any(profile.native for profile in document.sampled) or "compiler" in document.facts:
        return None
    largest = next(iter(document.hot_spots), None)
    if largest is None or largest.kind != "native" or largest.share < _LINES_TELL or largest.where.line:
        return None
    return largest.where.function


def _line_for(document: RunDocument, verdict: Verdict) -> Text | None:
    """Return what to type to have a value for the verdict; None if it is not known."""
    lines = backend_named(document.backend).tool_lines
    advice = verdict.advice[0] if verdict.advice else None
    code = verdict.cause.code if verdict.cause is not None else ""
    missing = code in ("not-collected", "deeper")
    if document.plan is None and not document.passes:
        counted = any(counter.scope.kind == "kernel" for counter in document.counters)
        if lines.count and document.trace is not None and not counted:
            return lines.count
        return lines.count_all if lines.count_all and missing else advice
    if verdict.metric == "time.interval":
        return _profile_line(document, "--sampling SECONDS")
    if code == "not-asked" and advice is not None:
        return _profile_line(document, advice)
    shallow = document.plan is not None and document.plan.depth in ("gate", "standard")
    return _profile_line(document, "--depth full") if shallow and missing else advice


def _profile_line(document: RunDocument, options: str) -> Text:
    typed = line_to_type(document.workload.command)
    # Not its name: that of somebody else's run would be sent the files that lie here
    place = "--on PLACE " if document.place is not None else ""
    return command(f"profkit profile {place}{options} -- {typed if len(typed) <= _COMMAND else 'COMMAND'}")


_BRIEF_SPOTS = 8  # rows on a short screen
BAR = 8  # characters
MIN_SHARE = 0.01  # of the wall time: smaller places are added up in the last row
_LINES_TELL = 0.2  # of the time: a function with so much is worth its lines
_FUNCTION, _CALLED = 28, 32  # characters of a function, and of what it calls


def spots_section(document: RunDocument) -> Section | None:
    """Return the places, the largest first; None where nothing was sampled."""
    known = [spot for spot in document.hot_spots if spot.kind != "rest" and spot.share >= MIN_SHARE]
    if not known:
        return None
    rest = 1 - sum(spot.share for spot in known)
    rows = (
        [*known, CodeSpot(rest, rest * known[0].seconds / known[0].share, "rest")]
        if rest >= MIN_SHARE
        else known
    )
    folder = document.workload.folder
    waiting = waiting_lines(document.trace) if document.trace is not None else ()
    columns: list[Column[CodeSpot]] = [
        Column("share", _share, meaning="of the wall time"),
        Column(
            "place",
            lambda spot: "everything else" if spot.kind == "rest" else where_text(spot.where, folder) or "-",
        ),
        Column("what it does", lambda spot: does_text(spot, waiting)),
    ]
    return Section(
        "Where the time goes", (data_table(columns, rows, brief=_BRIEF_SPOTS),), anchor="hot-spots"
    )


def _share(spot: CodeSpot) -> str:
    """Return `██████ 62 % 1.24 s`."""
    bar = "█" * round(BAR * min(1.0, spot.share)) or "▏"
    return f"{bar:{BAR}} {100 * spot.share:3.0f} %  {format_quantity(spot.seconds, 's')}"


def where_text(where: Place, folder: str) -> str:
    """Return `Net.forward train.py:14`, with the file as seen from `folder`; empty where nothing is known."""
    name = brief_place(where, _FUNCTION)
    if where.file is None:
        return name
    file = relative_path(where.file, folder)
    file = file if len(file) < 30 else file.rpartition("/")[2]
    return f"{name} {file}:{where.line}".strip() if where.line else f"{name} {file}".strip()


def brief_place(where: Place, width: int) -> str:
    """Return the function of a place in at most `width` characters: of a method the class goes first, since it
    says less.
    """
    name = place_name(where)
    return name if len(name) <= width else cut_right(name.rpartition(".")[2], width)


def does_text(spot: CodeSpot, waiting: Collection[tuple[str | None, int | None]] = ()) -> str:
    """Return `runs: 2,000 x Cursor.fetchall`; `sleeps, in 8 threads`; `waits for the GPU`."""
    under = spot.under
    if (spot.where.file, spot.where.line) in waiting:
        return "waits for the GPU"
    text = DOES.get(spot.kind, "")
    if spot.kind == "waiting" and not spot.where.file and not spot.where.function:
        text += ", where was not seen"
    if spot.starts:
        if spot.starts == 1:
            return "started once"
        return f"started {spot.starts:,} times, {format_quantity(spot.seconds / spot.starts, 's')} each"
    least = "≥ " if spot.partial else ""
    if under is not None and under.name:
        several = (under.calls or 0) > 1
        calls = f"{least}{under.calls:,} x " if several else ""
        each = under.seconds_per_call if several else None
        each_text = f", {format_quantity(each, 's')} each" if each else ""
        attribute = (
            read_attribute(spot.code.text) if under.name == "__get__" and spot.code is not None else None
        )
        called = attribute or called_name(under)
        # What Python's import system does is of no package, and the kind says that it imports.
        name = "" if called == IMPORT_SYSTEM else cut_right(_with_module(spot, called), _CALLED)
        if name:
            text = f"{'runs' if spot.kind in RUNS_CODE else text}: {calls}{name}{each_text}"
    elif spot.calls and spot.calls > 1:
        text += f", called {least}{spot.calls:,} times"
    if spot.processes:
        count = spot.processes + 1 if spot.kind == "import" else spot.processes
        text += f", in {plural(count, 'process', 'processes')}"
    elif spot.threads > 1:
        text += f", in {spot.threads} threads"
    return text + _inside_text(spot) + beside_text(spot)


def _with_module(spot: CodeSpot, called: str) -> str:
    """Return `json.loads` of `loads` where the line calls it by its module, and there is room for it."""
    written = [call.name for call in spot.code.find("call")] if spot.code is not None else []
    named = next(
        (name for name in written if re.fullmatch(rf"[a-z_][\w.]*\.{re.escape(called)}", name)), called
    )
    return named if len(named) <= _CALLED else called


def beside_text(spot: CodeSpot) -> str:
    """Say that a share may be that of other lines, too; empty where it is the place's own."""
    return "; nearby lines may account for a part of this" if spot.beside else ""


def _inside_text(spot: CodeSpot) -> str:
    """Return the innermost function of a library with most of a large row: `; 71 % in BaseDecisionTree.fit`.

    Where the called function is not known, there is nothing to be opened.
    """
    if spot.under is None or not spot.under.name or spot.share < _OPENED:
        return ""
    known = [line for line in spot.inside if not is_internal(line.file)]
    innermost = known[-1] if known else None
    if innermost is None:
        return ""
    inner = brief_name(innermost.function)
    # Of a private function the public name is that of the innermost one where this is what the line means.
    if inner == spot.under.name or inner.rpartition(".")[2] == spot.under.public:
        return ""
    return f"; {percent_text(100 * innermost.value)} in {_inner_name(innermost)}"


def _inner_name(line: CodeLine) -> str:
    """Return a library's public function; of a method before Python 3.11, whose class is not known, its module, too."""
    name = name_in_file(line.function, line.file)
    if "." not in name and line.file is not None:
        name = f"{module_name(line.file).rpartition('.')[2]}.{name}"
    return name if len(name) <= _INNER else cut_right(name.rpartition(".")[2], _INNER)
