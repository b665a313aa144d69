"""The account of a step as a bar and a table: where time goes, and how near each part is to its limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from profkit.analysis.hot_spots import DOES, RUNS_CODE
from profkit.analysis.summaries.host import is_disturbed, share_of_others
from profkit.analysis.summaries.kernels import bottleneck_title
from profkit.core.formatting import cut_right, format_quantity, joined, percent_text, plural
from profkit.core.types import Account, AccountRow, Bound, CodeSpot, Place, RunDocument, SpotKind
from profkit.reporting.charts.step_bar import PartLook, StepBar, StepPart
from profkit.reporting.columns import Column, data_table
from profkit.reporting.view import Block, NotOnPage, PageOnly, Paragraph, Section, Text, plain_text, soft
from profkit.reporting.view import joined as joined_spans
from profkit.reporting.views.run_insights import beside_text, brief_place, does_text, where_text

_BRIEF = 8  # rows on a short screen
_MAX_PARTS = 40  # of the bar: an account has fewer rows, but its file may be anybody's
ROW = "account-row"  # begins the ids of the table's rows
_UNIT = {
    "step": "a step",
    "region": "one entry of the region",
    "call": "one call",
    "iteration": "one iteration",
    "trace": "the traced time",
    "run": "the time",
}
_NEAR = 0.85  # of the time: what would be left at the limits, where little is to be won
_COVERED = 0.8  # of the time: rows whose least is known, for a word on all of it
_PARTLY = 0.3  # of the time: rows whose least is known, for a word on them alone
_MARGIN = 0.05
_WORTH = 0.1  # of a step
_NOTHING = 1e-6  # of a row's time: what is needed of it less than that is what rounding left
_BARRIERS = 0.05  # of the processor time
_IDLE = 0.3  # of the time, from which on it comes first
# Characters of an operation with its shapes, or of a kernel's name, with how often and whose it is.
_WHAT = 56
_WITH_BELOW = 62  # of both an operation and the line of a library that calls it
_LINE = 46  # characters of a line of source
_PLACE = 31  # characters of a place
_BAR = 4  # characters for all of a step
# What limits, in a column; in sentences it has its whole name.
_SHORT: Mapping[Bound, str] = {
    "shared": "shared mem",
    "tensor": "tensor",
    "fp32": "FP32",
    "fp64": "FP64",
    "fp16": "FP16",
    "integer": "integer",
    "xu": "special",
    "issue": "issue",
}
_COMPUTES = ("python", "library", "native", "gpu", "import", "rest")
WAITS: Mapping[SpotKind, str] = {kind: text for kind, text in DOES.items() if kind not in _COMPUTES}
# What bounds a place of the host, where no unit of the processor was counted.
_BOUND_TO: Mapping[SpotKind, str] = {
    "sleep": "sleep",
    "lock": "lock",
    "workers": "workers",
    "network": "network",
    "await": "await",
    "input": "input",
    "child": "process",
    "pipe": "pipe",
    "file": "files",
    "sync": "disk",
}

# Why a device had a lower clock than its highest, as the driver's reasons are called in `runtime`.
_HELD_BY = {
    "power limit": "the power limit",
    "hardware slowdown": "a slowdown of the hardware",
    "temperature, by the driver": "the temperature (by the driver)",
    "temperature, by the hardware": "the temperature (by the hardware)",
    "power brake": "the power brake",
}


def account_section(document: RunDocument) -> Section | None:
    """Return the account's headline, bar and table, the latter left out on a page; None without an account."""
    account = document.account
    if account is None or not account.rows or account.seconds <= 0:
        return None
    folder = document.workload.folder
    said = _run_headline(account, folder) if account.unit == "run" else _headline(account, document)
    said = f"{said} {_growth(account, folder)}".strip()
    blocks = (*step_bars(document, account), NotOnPage(_rows(document, account)))
    return Section(f"Where {_UNIT[account.unit]} goes", blocks, said, anchor="account")


def account_rows_section(document: RunDocument) -> PageOnly | None:
    """Return the account's table for a page, whose bar links to its rows; None without an account."""
    account = document.account
    if account is None or not account.rows or account.seconds <= 0:
        return None
    title = f"{_UNIT[account.unit][:1].upper()}{_UNIT[account.unit][1:]}, row by row"
    return PageOnly((Section(title, _rows(document, account), anchor="account-rows"),))


def step_bars(document: RunDocument, account: Account) -> Iterator[StepBar]:
    """Yield the account as one bar; nothing where no row takes any time.

    Rows beyond `_MAX_PARTS` share one part.
    """
    rows = [(number, row) for number, row in enumerate(account.rows) if row.seconds > 0]
    whole = sum(row.seconds for _, row in rows)
    if whole <= 0:
        return
    parts = [_part(document, account, number, whole) for number, _ in rows[:_MAX_PARTS]]
    if others := rows[_MAX_PARTS:]:
        share = sum(row.seconds for _, row in others) / whole
        words = f"{len(others):,} more rows"
        said = f"{percent_text(100 * share)}, {format_quantity(share * whole, 's')}: {words}"
        parts.append(StepPart(share, "unknown", words, "", said, row=others[0][0]))
    title = f"{_UNIT[account.unit]} of {format_quantity(account.seconds, 's')} as a bar of {len(parts)} parts"
    yield StepBar(f"{title[:1].upper()}{title[1:]}", tuple(parts), ROW)


def _part(document: RunDocument, account: Account, number: int, whole: float) -> StepPart:
    """Return a row as a part of the bar; waits of a host are drawn as empty as idle time of a device."""
    row, folder = account.rows[number], document.workload.folder
    share = row.seconds / whole
    place = "everything else" if row.kind == "rest" else row_place(row, folder)
    what = plain_text(row_text(document, account, row, folder))
    look: PartLook = "limited" if row.least is not None else "unknown"
    if row.kind == "rest":
        look = "unknown"
    elif row.kind == "idle" or (
        row.does in WAITS and row.does != "file"
    ):  # of a file it is not known what waits
        look = "idle"
    limit = row_limit(row)
    said = [f"{percent_text(100 * share)}, {_time(row)}", ": ".join(filter(None, (place, what)))]
    said += [f"limit: {limit}"] if limit else []
    if look == "limited":
        said.append(f"at its limit it would take {_at_limit(row)}")
    elif look == "idle":
        said.append("the hardware needs none of this time")
    elif look == "unknown" and row.kind != "rest":
        said.append("it is not known how much of this time the hardware needs")
    needed = min(1.0, (row.least or 0.0) / row.seconds)
    name = f"{100 * share:.0f} % {place or what}"
    return StepPart(share, look, name, what if place else "", "; ".join(said), needed, row.busy, number)


def _rows(document: RunDocument, account: Account) -> tuple[Block, ...]:
    """Return the table, and below it the clock, the threads that wait, and the start-up."""
    folder = document.workload.folder
    limited = any(row_limit(row) or _at_limit(row) for row in account.rows)
    columns: list[Column[AccountRow]] = [  # the first five fit into 80 columns
        Column("share", lambda row: _share(row.seconds / account.seconds), meaning="of the time"),
        Column(
            "time", lambda row: row.seconds, "s", meaning="~: divided by what another run showed", text=_time
        ),
        Column("place", lambda row: "everything else" if row.kind == "rest" else row_place(row, folder)),
        Column(
            "limit",
            row_limit,
            meaning="the unit of the time at the limit, and which part of the row's time that is",
        ),
        Column(
            "at limit",
            _at_limit,
            meaning="what its shapes need at the peaks, else the counted work at that unit's peak",
        ),
        # With a limit beside each row there is no room for it at 80 columns: it stands in a second table then.
        Column("what it is", lambda row: row_text(document, account, row, folder), wraps=not limited),
    ]
    table = replace(data_table(columns, account.rows, brief=_BRIEF), anchor=ROW)
    below = (
        _clock(account),
        _waiting_threads(account),
        _start_up(document, account),
        _loop_without_count(document, account),
    )
    return (table, *(Paragraph(text) for text in below if text is not None))


def _headline(account: Account, document: RunDocument) -> str:
    """Return how long a step takes, how much of it the hardware needs, and what accounts for the difference."""
    unit, folder = _UNIT[account.unit], document.workload.folder
    seen = f"{account.repeats:,} times" if account.repeats > 1 else "once"
    if account.unit == "iteration":
        unit = f"{unit} of the loop at {where_text(replace(account.loop, function=None), folder)}"
        seen = f"{account.repeats:,} of them"
    else:
        seen = f"seen {seen}"
    said = f"{unit[0].upper()}{unit[1:]} takes {format_quantity(account.seconds, 's')} ({seen})"
    if is_disturbed(document):
        others = percent_text(100 * share_of_others(document))
        return (
            f"{said}. Other programs used the processors for {others} of the run, so it is "
            "faster on an idle machine."
        )
    known = account.known >= _COVERED * account.seconds
    if known and account.least:
        # Rows of which nobody knows the limit count in full.
        about = "about" if account.seconds - account.known <= 0.5 * account.least else "at most"
        said += f"; at the hardware's limits it would take {about} {format_quantity(account.least, 's')}"
    idle = [row for row in account.rows if row.kind == "idle"]
    share = sum(row.seconds for row in idle) / account.seconds
    if share >= _IDLE:
        most = next((row for row in idle if row.where.file is not None), None)
        there = ""
        if most is not None:
            part = percent_text(100 * most.seconds / account.seconds)
            there = f", for {part} while the host is in {where_text(most.where, folder)}"
        return f"{said}. The GPU is idle for {percent_text(100 * share)} of it{there}."
    if known and account.least >= _NEAR * account.seconds and _nothing_better(account, document):
        left = percent_text(100 * (1 - account.least / account.seconds))
        return f"{said}. It is near these limits: the same work could take at most {left} less time."
    to_win = _most_to_win(account, folder, "these limits" if known and account.least else "its limit")
    return f"{said}.{to_win or ('' if known else _known_part(account, folder))}"


def _known_part(account: Account, folder: str) -> str:
    """Return what the rows with known limits need, if no single row stands out and the other limits are not known.

    If few rows have one, return the largest row; empty if that is small, too.
    """
    rows = [row for row in account.rows if row.least is not None]
    took = sum(row.seconds for row in rows)
    if took >= _PARTLY * account.seconds:
        needs, part = sum(row.least or 0.0 for row in rows), percent_text(100 * took / account.seconds)
        took_text, needs_text = format_quantity(took, "s"), format_quantity(needs, "s")
        return f" The limits are known for {part} of it, which takes {took_text} and would take {needs_text} at them."
    named = [row for row in account.rows if row.kind != "rest" and (row_what(row) or row_place(row, folder))]
    if not named:
        return ""
    most = max(named, key=lambda row: row.seconds)
    if most.seconds < _WORTH * account.seconds:
        return ""
    share, place = percent_text(100 * most.seconds / account.seconds), row_place(most, folder)
    what = row_what(most)
    described = f"{what} ({place})" if what and place else what or f"in {place}"
    return f" The largest part of it, {share}, is {described}."


def _growth(account: Account, folder: str) -> str:
    """Return the sentence that iterations of a loop take longer and longer; empty where they do not."""
    growth = account.growth
    if growth is None:
        return ""
    first, last = format_quantity(growth.first, "s"), format_quantity(growth.last, "s")
    iteration = "An iteration"
    if growth.where != account.loop:
        iteration = f"An iteration of the loop at {where_text(replace(growth.where, function=None), folder)}"
    return f"{iteration} takes {first} at first and {last} at the end: its work grows with the number of iterations."


def _run_headline(account: Account, folder: str) -> str:
    """Return what a run waits for; where that is little, the largest saving or the largest row.

    It is a single sentence, and empty where no row has a place or an operation.
    """
    waits = [(row, WAITS[row.does]) for row in account.rows if row.does is not None and row.does in WAITS]
    seconds: dict[str, float] = {}
    for row, text in waits:
        seconds[text] = seconds.get(text, 0.0) + row.seconds
    most = max(seconds, key=seconds.__getitem__, default="")
    if not most or seconds[most] < _IDLE * account.seconds:
        return _most_to_win(account, folder, "its limit").strip() or _largest_row(account, folder)
    where = next(where_text(row.where, folder) for row, text in waits if text == most)
    place = f", most of it in {where}" if where else ""
    return f"For {percent_text(100 * seconds[most] / account.seconds)} of the time the program {most}{place}."


def _largest_row(account: Account, folder: str) -> str:
    """Return the row that takes most of a run, and what it waits for.

    Where all rows are small, return what the first of them take together. Empty where no row has a place or an
    operation.
    """
    named = [
        (row, words)
        for row in account.rows
        if row.kind != "rest" and (words := where_text(row.where, folder) or row_what(row))
    ]
    if not named:
        return ""
    whole = format_quantity(account.seconds, "s")
    row, words = max(named, key=lambda pair: pair[0].seconds)
    share = row.seconds / account.seconds
    if share < _WORTH:
        first = sum(entry.seconds for entry, _ in named[:_BRIEF]) / account.seconds
        count = min(len(named), _BRIEF)
        return (
            f"No place takes {percent_text(100 * _WORTH)} of the {whole}: "
            f"the first {count} together take {percent_text(100 * first)}."
        )
    if row.does == "import":
        imported = row.what if re.fullmatch(r"[\w.]+", row.what) else "modules"  # or `[import system]`
        return f"Of the {whole}, {percent_text(100 * share)} is the import of {imported} ({words})."
    said = f"Of the {whole}, {percent_text(100 * share)} is in {words}"
    does = WAITS.get(row.does, "") if row.does is not None else ""
    return f"{said}, where the program {does}." if does else f"{said}."


def _nothing_better(account: Account, document: RunDocument) -> bool:
    """Return whether no insight promises more than the distance to the limits: other work could save more."""
    better = max(
        (insight.gain.at_most for insight in document.insights if insight.gain is not None), default=0.0
    )
    return better <= 1 - account.least / account.seconds + _MARGIN


def _most_to_win(account: Account, folder: str, limits: str) -> str:
    """Return the row with most seconds above its limit; empty where that is little, or the device is idle there."""
    rows = [row for row in account.rows if row.least is not None and row.kind in ("kernel", "idle", "host")]
    most = max(rows, key=lambda row: row.seconds - (row.least or 0.0), default=None)
    if most is None or most.least is None or most.kind == "idle":
        return ""
    if most.seconds - most.least < _WORTH * account.seconds:
        return ""
    place = row_place(most, folder)
    what = f"{row_what(most)} ({place})" if row_what(most) and place else row_what(most) or place
    took, needs = format_quantity(most.seconds, "s"), format_quantity(most.least, "s")
    if most.least < _NOTHING * most.seconds:
        return f" The largest excess over {limits} is in {what}: it takes {took}, and almost none of that is necessary."
    return f" The largest excess over {limits} is in {what}: it takes {took}, and {needs} would be enough."


def _share(share: float) -> str:
    """Return a share of 0 to 1 as a bar with its percentage: `████  62 %`."""
    bar = "█" * round(_BAR * min(1.0, share)) or "▏"
    return f"{bar:{_BAR}} {100 * share:3.0f} %"


def _time(row: AccountRow) -> str:
    """Return a row's time, with `~` before it where it is estimated."""
    return f"{'~' if row.estimated else ''}{format_quantity(row.seconds, 's')}"


def _at_limit(row: AccountRow) -> str:
    """Return the least time that a row needs at the hardware's limits; empty where it is not known.

    It is `0` where less than a millionth of the row's time is needed: rounding leaves as much.
    """
    if row.least is None or row.kind == "rest":
        return ""
    return format_quantity(row.least, "s") if row.least >= _NOTHING * row.seconds > 0 else "0"


def row_place(row: AccountRow, folder: str) -> str:
    """Return a row's place, cut to the width of its column: `forward train.py:12`."""
    text = where_text(row.where, folder)
    if len(text) <= _PLACE or row.where.file is None:
        return text[:_PLACE]
    line = text.rpartition(" ")[2].rpartition("/")[2]
    return f"{brief_place(row.where, max(1, _PLACE - len(line) - 1))} {line}"


def row_what(row: AccountRow, width: int = _WHAT) -> str:
    """Return `3 x mm [4096,768] x [768,50257] bf16, cuBLAS` or `GPU idle: the host launches 189 kernels`."""
    if row.kind == "rest":
        return ""
    if row.kind == "copy":
        count = round(row.launches or 0)
        return f"{f'{count:,} x ' if count > 1 else ''}copy, {row.what}"
    if row.kind == "idle":
        launches = round(row.launches or 0)
        if row.what:
            return f"GPU idle: {f'{launches:,} x ' if launches > 1 else ''}{row.what}"
        if row.where.file is None:
            return "GPU idle"
        return (
            f"GPU idle: the host launches {plural(launches, 'kernel')}"
            if launches
            else "GPU idle: the host works"
        )
    count = round(row.launches or 0)
    name = _operation(row.what)
    if not name and not row.type and not row.library:
        return ""  # a line that calls nothing with a name
    library = (row.library or "").rpartition("(")[2].rstrip(")")  # `ATen` of `PyTorch (ATen)`
    owner = f", {library}" if library else ""
    times = f"{count:,} x " if count > 1 else ""
    type_ = f" {row.type}" if row.type else ""
    room = width - len(owner) - len(times) - len(type_)
    return f"{times}{cut_right(name, room)}{type_}{owner}"


_CONVOLUTION = re.compile(
    r"^(?:aten::)?_?(?:cudnn_|mkldnn_|slow_)?(conv\w*?)(_backward)? \[[\d,]+\](?=,)(.*)$"
)
_ATTENTION = re.compile(
    r"^(?:aten::)?_?(?:scaled_dot_product|flash|efficient|cudnn)_\w*attention\w*?(_backward)?(?:_\w+)? (\[.*)$"
)
_SHAPES = re.compile(r"\[[\d,]+\]")


def _operation(text: str) -> str:
    """Return an operation in brief: `causal attention [8,12,512,64]`, `convolution 3x3 stride 2 [64,3,96,96]`.

    Any other operation only loses its `aten::` namespace.
    """
    shapes = _SHAPES.findall(text)
    attention = _ATTENTION.match(text)
    if attention is not None and len(shapes) >= 3:
        backward = " backward" if attention[1] else ""
        causal = "causal " if text.endswith(" causal") else ""
        return f"{causal}attention{backward} {shapes[1 if backward else 0]}"
    convolution = _CONVOLUTION.match(text)
    if convolution is not None and len(shapes) >= (3 if convolution[2] else 2):
        data, weight = shapes[1:3] if convolution[2] else shapes[:2]
        window = weight.strip("[]").split(",")[2:]
        transposed = " transposed" if "transpose" in text else ""
        form = text.rpartition("]")[2].strip()
        said = ("convolution", transposed, " backward" if convolution[2] else "", f" {'x'.join(window)}")
        return f"{''.join(said)}{f' {form}' if form else ''} {data}" if window else text
    return re.sub(r"^aten::_*", "", text)


def row_text(document: RunDocument, account: Account, row: AccountRow, folder: str) -> Text:
    """Return what a row is: an operation, or what the place does, in the words of the list of places.

    An operation is followed by the library's line that calls it, which the program's line leads to.
    """
    if row.kind != "host" or row.library is not None:
        below = where_text(replace(row.below, function=None), folder)
        busy = soft(_busiest_beside(row))
        if not below:
            return joined_spans(row_what(row), busy)
        return joined_spans(row_what(row, _WITH_BELOW - len(below)), soft(f" in {below}"), busy)
    spots = (spot for spot in document.hot_spots if (spot.where, spot.kind) == (row.where, row.does))
    spot = next(spots, None)
    if spot is None:
        return ""
    if account.unit == "iteration":
        spot = _of_one(spot, account.repeats)
    text, beside = does_text(replace(spot, beside=False)), beside_text(spot)
    # Where nothing that it calls has a name, the line itself says most.
    code = spot.code.text.strip() if spot.code is not None else ""
    count = round(row.launches or 0)
    does = DOES.get(spot.kind, "")
    together = text[len(does) :] if text.startswith(f"{does}, in ") else ""  # in 2 threads
    bare = (
        text == does
        or bool(together)
        or text.startswith(f"{does}, called ")
        or (bool(spot.executions) and text.startswith(f"{does}, "))
    )
    if not code or spot.kind not in RUNS_CODE or not bare:
        return text + beside
    times = f"{count:,} x " if count > 1 else ""
    shown = code if len(code) <= _LINE else f"{code[: _LINE - 1]}…"
    # How often the line ran is not known, but how often its function did.
    least = "≥ " if spot.partial else ""
    calls = (
        f", in {least}{spot.calls:,} calls"
        if not times and (spot.calls or 0) > 1 and not spot.executions
        else ""
    )
    made = spot.under.public if spot.under is not None else None
    most = f"; most of it makes the {made}" if made and f"{made}(" in code and code.count("(") > 1 else ""
    return f"runs: {times}{shown}{calls}{together}{most}{beside}"


def _of_one(spot: CodeSpot, repeats: int) -> CodeSpot:
    """Return a place with the calls per iteration; counts below 1.5 per iteration are dropped."""

    def part(calls: int | None) -> int | None:
        """Return the calls per iteration, rounded; None where not every iteration makes them."""
        return round(calls / repeats) if calls and calls >= 1.5 * repeats else None

    under = replace(spot.under, calls=part(spot.under.calls)) if spot.under is not None else None
    return replace(spot, calls=part(spot.calls), under=under)


def row_limit(row: AccountRow) -> str:
    """Return the unit of a row's time at its limit, and the share of its time that this is: `tensor 97 %`.

    For idle time of the device it is `host`, where its place is known.
    """
    if row.kind == "idle":
        return "host" if row.where.file is not None else ""
    unit = row.needs or row.limit
    if unit is None or (row.busy is None and row.needs is None):
        return _BOUND_TO.get(row.does, "") if row.does is not None else ""
    share = row.least / row.seconds if row.least is not None and row.seconds > 0 else row.busy or 0.0
    percent = f"{100 * share:.0f}" if share >= _LEAST_SHOWN else "<1"
    return f"{_SHORT.get(unit, bottleneck_title(unit))} {percent} %"


_LEAST_SHOWN = 0.005  # of a unit's peak
_UNLIKE = 0.05  # of a unit's peak


def _busiest_beside(row: AccountRow) -> str:
    """Return `; L1 is at 94 %` where the busiest unit does more than the row's limit says; empty elsewhere."""
    if row.kind != "kernel" or row.limit is None or row.busy is None or row.least is None or row.seconds <= 0:
        return ""
    if row.busy - row.least / row.seconds < _UNLIKE:
        return ""
    return f"; {_SHORT.get(row.limit, bottleneck_title(row.limit))} is at {100 * row.busy:.0f} %"


def _clock(account: Account) -> str | None:
    """Return `clock 1.49 of 1.98 GHz: held by the power limit`; None without samples of the clock.

    It adds the share of the tensor and FP32 peaks at that clock and of the data sheet's, where both are known.
    """
    clock = account.clock
    if clock is None:
        return None
    most = f" of {clock.highest / 1e9:.3g}" if clock.highest else ""
    held = (
        f": held by {joined([_HELD_BY.get(reason, reason) for reason in clock.held_by])}"
        if clock.held_by
        else ""
    )
    said = f"clock {clock.seen / 1e9:.3g}{most} GHz{held}"
    for limit in ("tensor", "fp32"):
        row = next(
            (
                candidate
                for candidate in account.rows
                if candidate.limit == limit and candidate.of_sheet is not None
            ),
            None,
        )
        if row is not None and row.busy is not None and row.of_sheet is not None:
            unit = "tensor cores" if limit == "tensor" else "FP32 units"
            at_clock, of_sheet = percent_text(100 * row.busy), percent_text(100 * row.of_sheet)
            said += f"; {row_what(row)} has {at_clock} of the {unit}' peak at that clock, "
            said += f"{of_sheet} of the data sheet's"
    return said


def _waiting_threads(account: Account) -> str | None:
    """Return the share of processor time in threads that wait for each other; None where it is below 5 %.

    The rows do not show it: they have the time of the thread that the program waits for.
    """
    if account.waiting_threads < _BARRIERS:
        return None
    share = percent_text(100 * account.waiting_threads)
    return f"threads that wait for each other (OpenMP, BLAS): {share} of the processor time"


def _loop_without_count(document: RunDocument, account: Account) -> str | None:
    """Return where the loop is that would be the table's unit if it was known how often it ran; None without one.

    Samples show the loop, and the pass that counts calls its iterations: that is no part of a quick run, and ends early
    in some others.
    """
    loops = [loop for sampled in document.sampled[:1] if not sampled.native for loop in sampled.loops]
    if account.unit != "run" or not loops:
        return None
    loop, counted = loops[-1], any(pass_.name == "cprofile" for pass_ in document.passes)
    if any((count.file, count.line) == (loop.file, loop.first) for count in document.line_counts):
        return None  # its iterations are too few or too short to be a unit
    where = where_text(Place(file=loop.file, line=loop.line), document.workload.folder)
    how = "" if counted else ": --depth standard counts them"
    share = percent_text(100 * loop.share)
    return f"{share} of the time without imports is in the loop at {where}, whose iterations were not counted{how}"


def _start_up(document: RunDocument, account: Account) -> str | None:
    """Return `start-up, not in the table: 12.7 s (import torch 10.4 s)`; None where it is not known."""
    split = document.time_split
    seconds = account.outside or (split.startup if split is not None and account.unit != "run" else None)
    if not seconds:
        return None
    parts = ", ".join(f"{_start_part(row, document.workload.folder)} {_time(row)}" for row in account.start)
    what = "outside of the loop" if account.unit == "iteration" else "start-up"
    return f"{what} (not in the table): {format_quantity(seconds, 's')}{f' ({parts})' if parts else ''}"


def _start_part(row: AccountRow, folder: str) -> str:
    """Return a part of the start-up: `import torch`, or its place."""
    if row.does == "import":
        return f"import {row.what}" if row.what else "imports"
    return where_text(row.where, folder)
