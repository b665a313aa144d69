"""Tables of samples as the reader of exports gives them, written by hand."""

from profkit.profilers.xctrace.cells import Backtrace, Binary, Process, StackFrame, Thread
from profkit.profilers.xctrace.tables import ExportColumn, ExportTable

ME = Process("python3.12", 812)
OTHER = Process("WindowServer", 401)
MAIN = Thread("Main Thread", 0x51, ME)
WORKER = Thread("", 0x52, ME)
MS = 1_000_000


def frame(name, library=None):
    return StackFrame(name, None, Binary(library) if library else None)


def stack(*frames):
    """A stack, innermost first, of names or (name, library)."""
    return Backtrace(tuple(frame(*f) if isinstance(f, tuple) else frame(f) for f in frames))


def sample(
    time=0,
    weight=MS,
    calls=None,
    thread=MAIN,
    process=ME,
    state="Running",
    counts=None,
    shown=None,
    core=None,
):
    return {
        "time": time,
        "thread": thread,
        "process": process,
        "thread-state": state,
        "weight": weight,
        "weight/@fmt": shown,
        "stack": calls,
        "cp-user-callstack": calls,
        "counters-array": counts,
        "core/@fmt": core,
    }


def table(samples, schema="time-profile", **attributes):
    def rows(wanted):
        return iter([tuple(one.get(name) for name in wanted) for one in samples])

    told = {name.replace("_", "-"): value for name, value in attributes.items()}
    return ExportTable(schema, (ExportColumn("time", "Sample Time", "sample-time"),), rows, 1, 1, told)
