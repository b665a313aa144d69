"""Tables of a Metal System Trace as the reader of exports gives them, written by hand. Times in us."""

from __future__ import annotations

from profkit.core.types import Report
from profkit.profilers.xctrace.alignment import Alignment, TraceRecording
from profkit.profilers.xctrace.metal_report import MetalTableReader
from profkit.profilers.xctrace.tables import ExportTable
from profkit.profilers.xctrace.toc import Process, TraceRun

ME = Process("python3.12", 812)
SCREEN = Process("WindowServer", 401)
BROWSER = Process("Firefox GPU Helper", 900)
SETTINGS = ("Counter Set: (null)", "Shader Timeline: Disabled", "Induced GPU Performance State: Default")
SEC = 1e-6  # an us in s
_NS = 1000


def work(start, duration, process=ME, *, label="Command Buffer 0:Compute Command 0", latency=None, **more):
    """A row of metal-gpu-intervals."""
    whose = "n/a" if process is None else f"{process.name} ({process.pid})"
    return {
        "start": start * _NS,
        "duration": duration * _NS,
        "process": process,
        "gpu": "M1",
        "channel-name": "Compute",
        "event-label": f"{label}      ( {whose} )  0xaeffafed",
        "state": "Active",
        "start-latency": None if latency is None else latency * _NS,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }


def state(start, duration, state="Active", gpu="M1"):
    """A row of metal-gpu-state-intervals."""
    return {"start": start * _NS, "duration": duration * _NS, "state": state, "gpu": gpu}


def encoder(number, label, buffer=0, start=0, duration=1, process=ME, buffer_label="Command Buffer 0"):
    """A row of metal-application-encoders-list."""
    return {
        "start": start * _NS,
        "duration": duration * _NS,
        "process": process,
        "cmdbuffer-label": buffer_label,
        "encoder-label": label,
        "cmdbuffer-id": buffer,
        "encoder-id": number,
    }


def table(schema, rows):
    """A table of rows with cells by the mnemonic of their column."""
    return ExportTable(
        schema,
        (),
        lambda wanted: iter([tuple(row.get(name.removesuffix("/@fmt")) for name in wanted) for row in rows]),
    )


def run(settings=SETTINGS, process=ME, schemas=(), **summary):
    """An entry of a table of contents."""
    return TraceRun(
        1,
        process={"name": process.name, "pid": str(process.pid)} if process is not None else {},
        summary={"template-name": "Metal System Trace", **summary},
        settings=dict(line.split(": ") for line in settings),
        tables=frozenset(schemas),
    )


def read(tables, *, contents=None, windows=(), pids=(), alignment=None):
    """The report of tables (schema to rows, or pairs of both) as a recording of ME."""
    pairs = list(tables.items()) if isinstance(tables, dict) else list(tables)
    bounds = tuple((begin * _NS, end * _NS) for begin, end in windows)
    recording = TraceRecording(
        run() if contents is None else contents or None,
        alignment=alignment or Alignment(bounds, len(bounds)),
        pids=frozenset(pids),
    )
    piece = MetalTableReader(recording)
    for schema, rows in pairs:
        assert schema in piece.schemas
        piece.read(table(schema, rows))
    return piece.finish(Report("xctrace", "xctrace-export"))
