"""Flame graphs on the page of a run: drawn by the page's script, with the hottest functions as a table beside."""

from __future__ import annotations

from profkit.analysis.stacks.files import Flame, flame_of
from profkit.analysis.summaries.cpu import is_sampled
from profkit.backends import backend_named
from profkit.core.formatting import percent
from profkit.core.types import RunDocument
from profkit.reporting.charts.flame import flame_data, hottest
from profkit.reporting.html.chart_figures import sentence, summary_of
from profkit.reporting.html.escape import text
from profkit.reporting.html.part import Extras, Part

SEEN = 0.001  # of all samples: less that no box shows is not worth a sentence
MOST = 3  # events that are drawn; more stand in the file
TITLE = "Flame graph"
HOST = "profkit profile --backend cpu -- COMMAND"
HOW = "Click or Enter: this box alone. Arrow keys: from box to box. Escape: all."
WORDS = ("Python", "native", "operating system")
KEY = "".join(f'<i class="k{n}"></i><span>{name}</span>' for n, name in enumerate(WORDS))


def part(document: RunDocument, extras: Extras) -> Part | None:
    """One graph for each event that was sampled; why there is none where somebody would look for one."""
    flames = [flame for stacks in extras.stacks if (flame := flame_of(stacks)) is not None]
    if flames:
        drawn = "".join(_graph(flame) for flame in flames[:MOST])
        data = [flame_data(flame) for flame in flames[:MOST]]
        told = "Widths are shares of the samples; callers stand above what they call."
        return Part("flame-graph", TITLE, drawn, told, data={"flame-data": data})
    timed = document.trace is not None and document.trace.span is not None
    if extras.of_metal(document) and any(is_sampled(profile) for profile in document.profiles):
        return None  # it was sampled, and the page of a run folder without its stacks has its hot spots alone
    if backend_named(document.backend).has_device and (document.plan is not None or timed):
        why = "Stacks are sampled of a program on the CPU, and this run was on the GPU."
        return Part("flame-graph", TITLE, sentence("Where its host spends the time is not known.", HOST), why)
    trace = summary_of(document, "trace")
    if document.plan is None or trace is None or trace.tables:
        return None
    fix = next(
        (note.removeprefix("To have it: ") for note in trace.notes if note.startswith("To have it")), None
    )
    return Part("flame-graph", TITLE, sentence("There are no sampled stacks.", fix), trace.headline)


def _graph(flame: Flame) -> str:
    left = (
        f"{percent(100 * flame.left_out)} % of it is in boxes too narrow to be drawn."
        if flame.left_out > SEEN
        else ""
    )
    rows = "".join(
        f"<tr><td><bdi>{text(name)}</bdi></td><td>{own}</td><td>{total}</td></tr>"
        for name, own, total in hottest(flame)
    )
    label = text(f"Find in {flame.title}")
    note = f'<p class="note">{text(left)}</p>' if left else ""
    return (
        f'<div class="flame-graph"><h3>{text(flame.title)}</h3>'
        f'<div class="flame-tools" hidden><label>{label} <input type="search" autocomplete="off"></label>'
        f'<button type="button">Show all</button><span class="flame-key">{KEY}</span></div>'
        '<div class="flame-room">'
        f'<div class="flame" role="group" aria-label="{text(flame.title)}, as a flame graph"></div></div>'
        '<p class="flame-told" aria-live="polite"></p>'
        f'<p class="flame-tools note" hidden>{HOW}</p>{note}'
        "<details open><summary>The hottest functions as a table</summary><table><thead><tr><th>function</th>"
        f"<th>own</th><th>with callees</th></tr></thead><tbody>{rows}</tbody></table></details></div>"
    )
