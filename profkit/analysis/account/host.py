"""The account of one entry of a marked region on the processor: its places by their samples."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.account.rows import with_rest
from profkit.analysis.summaries.host import scope_of
from profkit.analysis.summaries.readings import find_reading
from profkit.core.types import Account, AccountRow, AccountUnit, Bound, HotSpot, RunDocument

FULL = 100.0  # %: a share of a peak above it says that an input is wrong
# Metrics in % of the machine's measured peaks, and which unit that is.
_SHARES: tuple[tuple[str, Bound], ...] = (("flops.share", "fp32"), ("bandwidth.dram.share", "dram"))
_WHOLE = 0.9  # of the time: a place with so much does what was counted of the region


def host_account(document: RunDocument) -> Account | None:
    """The account of one entry of the only region that is marked; its places have their shares of the median."""
    timings = [one for one in document.timings if one.kind != "process"]
    if len(timings) != 1 or not document.hot_spots:
        return None
    scope = scope_of(timings[0])
    median = find_reading(document, "time.median", "timing")
    if median.value is None or median.scope != scope:
        return None
    rows = [_host_row(spot, median.value) for spot in document.hot_spots if spot.kind != "rest"]
    shares = {bound: find_reading(document, name) for name, bound in _SHARES}
    known = {
        bound: one.value / 100
        for bound, one in shares.items()
        if one.value is not None and one.doubt is None and one.scope == scope and 0 < one.value <= FULL
    }
    if known and rows and rows[0].seconds >= _WHOLE * median.value:
        bound = max(known, key=known.__getitem__)
        least = known[bound] * rows[0].seconds
        rows[0] = replace(rows[0], limit=bound, busy=known[bound], least=least)
    repeats = sum(len(one.seconds) for one in timings[0].processes)
    unit: AccountUnit = "call" if timings[0].kind == "benchmark" else "region"
    return Account(unit, median.value, with_rest(rows, median.value), repeats)


def _host_row(spot: HotSpot, seconds: float) -> AccountRow:
    """A place with its share of one entry; how often it calls what is under it is counted in the whole run."""
    under = spot.under.name if spot.under is not None else ""
    return AccountRow("host", spot.share * seconds, spot.where, under, estimated=True, does=spot.kind)
