"""A run's page with 10,000 kernels in a headless browser: its size, how long it takes to open, and the longest pause.

    python -m tests.performance.html_ten_thousand [KERNELS]

A pause is the longest time in which the page's thread answered nobody: the longest gap between two ticks of a timer
that is set again and again, while the table is opened, sorted, filtered, scrolled. The peer is what most reports are:
one plain <table> of the same rows and columns, sorted and filtered by moving and hiding its rows.
"""

from __future__ import annotations

import html
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from profkit.analysis.summaries.kernels import kernel_rows
from profkit.core.formatting import format_quantity
from profkit.reporting.views.run_kernels import kernel_columns
from tests import page_documents
from tests.browser import started, why_not
from tests.reporting.shown import run_page as render

ROUNDS = 5
# Gaps between ticks of a message channel: unlike timers these are not slowed down when nested. A frame that follows is
# waited for, so that layout and painting count.
PAUSE = """async (action) => {
  const channel = new MessageChannel(); let last = performance.now(), worst = 0, going = true;
  channel.port1.onmessage = () => { const now = performance.now(); worst = Math.max(worst, now - last); last = now;
    if (going) channel.port2.postMessage(0); };
  channel.port2.postMessage(0);
  await new Promise(done => setTimeout(done, 30));
  worst = 0;
  const begin = performance.now();
  await ACTION;
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  await new Promise(done => setTimeout(done, 0));
  going = false;
  return worst; }"""
SETTLE = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))"
OURS = {
    "sort by a number": "document.querySelectorAll('#kernel-table thead button')[2].click()",
    "sort by name": "document.querySelectorAll('#kernel-table thead button')[0].click()",
    "filter, first letter": "{TYPE}('#kernel-filter', 'g')",
    "filter, a word": "{TYPE}('#kernel-filter', 'gemm_kernel silu')",
    "filter, nothing": "{TYPE}('#kernel-filter', '')",
    "scroll through all": "{SCROLL}('#kernel-grid')",
}
PLAIN = {
    "sort by a number": "sortBy(2)",
    "sort by name": "sortBy(0)",
    "filter, first letter": "{TYPE}('#filter', 'g')",
    "filter, a word": "{TYPE}('#filter', 'gemm_kernel silu')",
    "filter, nothing": "{TYPE}('#filter', '')",
    "scroll through all": "{SCROLL}('#box')",
}
TYPE = (
    "((where, what) => { const box = document.querySelector(where); box.value = what;"
    " box.dispatchEvent(new Event('input')); })"
)
SCROLL = (
    "(async where => { const box = document.querySelector(where); for (let n = 0; n <= 20; n++) {"
    " box.scrollTop = box.scrollHeight * n / 20; await new Promise(requestAnimationFrame); } })"
)
PEER = """<!doctype html><meta charset=utf-8><title>plain</title><style>#box{max-height:600px;overflow:auto}
td,th{white-space:nowrap;padding:0 1em 0 0;text-align:right}thead th{position:sticky;top:0;background:#fff}</style>
<input id=filter><div id=box><table><thead><tr>%s</tr></thead><tbody>%s</tbody></table></div><script>
const body = document.querySelector('tbody'); let down = {};
const value = (row, n) => { const one = row.cells[n];
  return one.dataset.v === undefined ? one.textContent : +one.dataset.v; };
function sortBy(n) { const sign = (down[n] = !down[n]) ? -1 : 1;
  const rows = Array.from(body.rows, row => [value(row, n), row]);
  rows.sort((a, b) => sign * (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)); body.append(...rows.map(row => row[1])); }
document.getElementById('filter').addEventListener('input', event => {
  const words = event.target.value.toLowerCase().split(' ').filter(Boolean);
  for (const row of body.rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word)); });
</script>"""


def peer(document: Any) -> str:
    """The same rows and columns as one plain table."""
    rows = kernel_rows(document)
    shown = [c for c in kernel_columns(document) if any(c.value(row) is not None for row in rows)]
    units = [c.unit or "%" for c in shown]

    def cell(value: object, unit: str) -> str:
        if isinstance(value, str) or value is None:
            return f"<td>{html.escape(value or '')}"
        return f"<td data-v={value!r}>{html.escape(format_quantity(float(value), unit))}"  # type: ignore[arg-type]

    body = "".join(
        "<tr>" + "".join(cell(c.value(row), unit) for c, unit in zip(shown, units, strict=True))
        for row in rows
    )
    return PEER % ("".join(f"<th>{c.title}" for c in shown), body)


def opened(page: Any, path: Path) -> dict[str, float]:
    """Milliseconds until the document was parsed and its scripts had run, until the first paint; the longest task."""
    page.goto(path.as_uri())
    page.wait_for_timeout(300)
    told: dict[str, float] = page.evaluate(
        """() => new Promise(done => { let longest = 0;
        new PerformanceObserver(list => {
          for (const one of list.getEntries()) longest = Math.max(longest, one.duration); })
          .observe({type: 'longtask', buffered: true});
        setTimeout(() => done({
          'DOMContentLoaded': performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd,
          'first paint': performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1,
          'longest task while opening': longest}), 100); })"""
    )
    return told


def pauses(page: Any, actions: dict[str, str]) -> dict[str, float]:
    """Milliseconds of the longest pause of each action."""
    found = {}
    for name, action in actions.items():
        script = action.replace("{TYPE}", TYPE).replace("{SCROLL}", SCROLL)
        found[name] = page.evaluate(PAUSE.replace("ACTION", script).replace("(action)", "()"))
        page.evaluate(SETTLE)
    return found


def main() -> None:
    """Print both, side by side, as medians over some rounds."""
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    kernels = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    document = page_documents.many(kernels)
    begin = time.perf_counter()
    made = render(document)
    seconds = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder, started() as browser:
        ours, plain = Path(folder, "ours.html"), Path(folder, "plain.html")
        ours.write_text(made, encoding="utf-8")
        plain.write_text(peer(document), encoding="utf-8")
        told: dict[str, list[list[float]]] = {}
        for _ in range(ROUNDS):
            for place, (path, actions) in enumerate(((ours, OURS), (plain, PLAIN))):
                page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                for name, value in {**opened(page, path), **pauses(page, actions)}.items():
                    told.setdefault(name, [[], []])[place].append(value)
                page.context.close()
        print(f"{kernels} kernels: the page is rendered in {seconds:.2f} s")
        print(f"{'':28}{'profkit':>12}{'plain table':>14}{'plain/profkit':>15}")
        sizes = [path.stat().st_size / 1e6 for path in (ours, plain)]
        print(f"{'size, MB':28}{sizes[0]:12.2f}{sizes[1]:14.2f}{sizes[1] / sizes[0]:15.1f}")
        for name, values in told.items():
            a, b = (statistics.median(one) for one in values)
            print(
                f"{name + ', ms':28}{a:12.1f}{b:14.1f}{b / a if a > 0 else 0:15.1f}   worst {max(values[0]):.0f}"
            )
        print(json.dumps({name: [statistics.median(one) for one in values] for name, values in told.items()}))


if __name__ == "__main__":
    main()
