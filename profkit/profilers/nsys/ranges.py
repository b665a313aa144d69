"""The NVTX ranges of a trace, and when the workload had the profiler switched on."""

from __future__ import annotations

import re

from profkit.analysis.timeline.records import Range
from profkit.analysis.timeline.windows import region_name
from profkit.profilers.nsys.columns import CALLS
from profkit.profilers.nsys.database import Database

_EVENTS = "NVTX_EVENTS"
_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75  # ENUM_NSYS_EVENT_TYPE
_NVTXT = {70: _PUSH_POP, 71: _START_END}  # the same from a text file
MOST_RANGES = 1 << 20
_NUMBERED = re.compile(
    r", (?:seq|op_id) = \d+"
)  # by which torch.autograd.profiler.emit_nvtx tells its entries apart


def read_ranges(
    database: Database, processes: dict[int, int], threads: dict[int, int]
) -> tuple[tuple[Range, ...], str | None]:
    """All ranges in order, and a remark where there are too many.

    `processes` and `threads` number what the columns number, so that both mean the same. Of old schemas the text may
    stand in the row, of newer ones in StringIds; a domain is named by an event of its own.
    """
    if not {"start", "eventType"} <= database.columns(_EVENTS):
        return (), None
    number, text = database.number, database.text
    fields = (
        f"{number(_EVENTS, 'start')}, {number(_EVENTS, 'end', -1)}, {number(_EVENTS, 'eventType')}, "
        f"{text(_EVENTS, 'text')}, {number(_EVENTS, 'textId', -1)}, {number(_EVENTS, 'domainId')}, "
        f"{number(_EVENTS, 'globalTid')}"
    )
    domains = _domains(database, fields)
    kinds = ", ".join(map(str, (_PUSH_POP, _START_END, *_NVTXT)))
    query = f"SELECT {fields} FROM {_EVENTS} WHERE eventType IN ({kinds}) ORDER BY 1 LIMIT {MOST_RANGES + 1}"
    texts: dict[int, str] = {}
    found: list[Range] = []
    for rows in database.blocks(query):
        texts.update(database.strings(sorted({row[4] for row in rows if row[3] is None} - texts.keys())))
        for start, end, kind, name, text_id, domain, thread in rows:
            whole_process = _NVTXT.get(kind, kind) == _START_END
            process = processes.setdefault(thread >> 24, len(processes))
            called, of = region_name(
                _unnumbered(name if isinstance(name, str) else texts.get(text_id, "[unnamed]")),
                domains.get((thread >> 24, domain)) or domains.get((0, domain)) if domain else None,
            )
            found.append(
                Range(
                    called,
                    of,
                    start,
                    end if end >= start else None,
                    process,
                    None if whole_process else threads.setdefault(thread, len(threads)),
                )
            )
    if len(found) > MOST_RANGES:
        return tuple(found[:MOST_RANGES]), f"only the first {MOST_RANGES} NVTX ranges were looked at"
    return tuple(found), None


def _unnumbered(name: str) -> str:
    """`aten::mm, op_id = 314349` is one entry of `aten::mm`."""
    return _NUMBERED.sub("", name) if " = " in name else name


def _domains(database: Database, fields: str) -> dict[tuple[int, int], str]:
    """The names of the domains, by process and number."""
    rows = database.rows(f"SELECT {fields} FROM {_EVENTS} WHERE eventType = {_DOMAIN} LIMIT 65536")
    texts = database.strings(sorted({row[4] for row in rows}))
    return {
        (thread >> 24, domain): name if isinstance(name, str) else texts.get(text_id, "")
        for _, _, _, name, text_id, domain, thread in rows
    }


def read_profiler(database: Database) -> tuple[tuple[int, int | None], ...]:
    """From when to when the profiler was on, by cudaProfilerStart and Stop; None for an end that was not recorded."""
    if not {"start", "nameId"} <= database.columns(CALLS) or "value" not in database.columns("StringIds"):
        return ()
    names = dict(
        database.rows(
            "SELECT id, value FROM StringIds WHERE value LIKE 'cu%ProfilerSt%' AND length(value) < 64 LIMIT 64"
        )
    )
    if not names:
        return ()
    query = (
        f"SELECT {database.number(CALLS, 'start')}, {database.number(CALLS, 'end')}, nameId FROM {CALLS} "
        f"WHERE nameId IN ({','.join(str(int(n)) for n in names)}) ORDER BY 1 LIMIT 100000"
    )
    periods: list[tuple[int, int | None]] = []
    begun: int | None = None
    for start, end, name in database.rows(query):
        if "ProfilerStart" in str(names.get(name)):
            begun = end if begun is None else begun
        elif begun is not None:
            periods.append((begun, start))
            begun = None
    if begun is not None:
        periods.append((begun, None))
    return tuple(periods)
