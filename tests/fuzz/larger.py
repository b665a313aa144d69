"""Larger files of each kind, from recorded ones: `CASES` says for every target how one of `n` times the size is made.

A file grows where its reader could compare each with each: in its records, in how many of them have names of their own,
and in how deep they lie in each other.
"""

from __future__ import annotations

import functools
import gzip
import json
import marshal
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from profkit.profilers.ncu.blocks import read_file_header
from tests import xctrace_tables
from tests.fuzz import folders, seeds

_MAC = seeds.DATA / "xctrace" / "m1"
Maker = Callable[[int], bytes]
NAMES = frozenset(("name", "symbol", "comm", "op_name", "operation"))


def repeated(value: Any, n: int, named: frozenset[str] = frozenset()) -> Any:
    """A JSON document whose outermost lists of objects are `n` times as long, with new names each time."""

    def again(item: Any, k: int) -> Any:
        if isinstance(item, dict):
            return {
                key: f"{inner}.{k}" if key in named and isinstance(inner, str) else again(inner, k)
                for key, inner in item.items()
            }
        return [again(inner, k) for inner in item] if isinstance(item, list) else item

    if isinstance(value, dict):
        return {key: repeated(inner, n, named) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return [again(item, k) for k in range(n) for item in value]
    return value


def _json(data: bytes, n: int, named: frozenset[str] = frozenset()) -> bytes:
    return json.dumps(repeated(json.loads(data), n, named)).encode()


def _folder(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    return folders.pack({name: change(name, body) for name, body in folders.unpack(data).items()})


def _documents(made: Callable[[], tuple[bytes, ...]], number: int) -> Maker:
    return lambda n: _folder(made()[number], lambda _, body: _json(body, n))


def _journal(made: Callable[[], tuple[bytes, ...]]) -> Maker:
    def lines(_: str, body: bytes) -> bytes:
        head, *rest = body.splitlines(keepends=True)
        return head + b"".join(rest) * lines.n  # type: ignore[attr-defined]

    def make(n: int) -> bytes:
        lines.n = n  # type: ignore[attr-defined]
        return _folder(made()[0], lines)

    return make


def _recorded(name: str) -> bytes:
    return (seeds.DATA / name).read_bytes()


def _numbered(text: bytes, words: bytes, n: int) -> bytes:
    """The text `n` times, each time with a number behind those words."""
    return b"".join(re.sub(words, rb"\g<0>_%d" % k, text) for k in range(n))


# ------------------------------------------------------------ torch


def _trace(events: list[dict[str, Any]]) -> bytes:
    return json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}).encode()


def _event(category: str, name: str, start: float, length: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, "pid": 1, "tid": 1, **more}


def torch_operations(n: int) -> bytes:
    """Operators of the CPU, each called by the one before it."""
    return _trace([_event("cpu_op", f"aten::{k % (n // 2)}", k, 2 * n - 2 * k) for k in range(n)])


def torch_ranges(n: int) -> bytes:
    """Ranges inside of each other, and in each of them the launch of a kernel of its own."""
    events = []
    for k in range(n):
        key = {"correlation": k + 1, "device": 0, "stream": 7}
        events += [
            _event("user_annotation", f"range {k}", k, 4 * n - 2 * k),
            _event("cuda_runtime", "cudaLaunchKernel", k + 0.1, 0.5, args=key),
            _event("kernel", f"kernel_{k}", 4 * n + k, 0.5, args=key),
        ]
    return _trace(events)


def torch_streams(n: int) -> bytes:
    """Kernels on a stream each, all at once, launched by as many threads."""
    events = []
    for k in range(n):
        key = {"correlation": k + 1, "device": 0, "stream": k}
        events += [
            _event("cuda_runtime", "cudaLaunchKernel", k, n, args=key, tid=k),
            _event("kernel", "kernel", k + 2, n, args=key),
        ]
    return _trace(events)


def torch_recorded(n: int) -> bytes:
    """A recorded trace again and again, each time later."""
    trace = json.loads(gzip.decompress(_recorded("cuda/torch/torch.both.json.gz")))
    timed = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    span = max(event["ts"] + event["dur"] for event in timed) - min(event["ts"] for event in timed) + 10
    later = []
    for k in range(n):
        for event in timed:
            args = dict(event.get("args", ()))
            if "correlation" in args:
                args["correlation"] += k * 1_000_000
            later.append({**event, "ts": event["ts"] + k * span, "args": args})
    return json.dumps({**trace, "traceEvents": later}).encode()


# ------------------------------------------------------------ NVIDIA's


@functools.cache
def _nsys_tables(name: str) -> bytes:
    return _recorded(f"cuda/nsys/{name}.sqlite")


def _nsys(name: str) -> Maker:
    """A recorded export with the rows of all tables that have times again and again, later."""

    def make(n: int) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(_nsys_tables(name))
            with closing(sqlite3.connect(file.name)) as base:
                for (table,) in base.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                ).fetchall():
                    base.executescript(_more_rows(base, table, n))
            return Path(file.name).read_bytes()

    return make


def _more_rows(base: sqlite3.Connection, table: str, n: int) -> str:
    columns = [(row[1], row[5]) for row in base.execute(f'PRAGMA table_info("{table}")')]
    if ("start", 0) not in columns:
        return ""
    later = {"start": "+ k * 1000000000000", "end": "+ k * 1000000000000", "correlationId": "+ k * 10000000"}
    names = [name for name, key in columns if not key]
    values = ", ".join(f'"{name}" {later.get(name, "")}' for name in names)
    into = ", ".join(f'"{name}"' for name in names)
    return f"""
        WITH RECURSIVE times(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM times WHERE k < {n - 1})
        INSERT INTO "{table}" ({into}) SELECT {values} FROM (SELECT * FROM "{table}"), times WHERE k > 0;
    """


def nsys_stats(n: int) -> bytes:
    """Each time other kernels."""
    head, *rows = _recorded("cuda/nsys/stats/hostbound_cuda_gpu_kern_sum.csv").splitlines(keepends=True)
    return head + _numbered(b"".join(rows), rb"\w+(?=<)", n)


def ncu_report(n: int) -> bytes:
    """The blocks of a recorded report again and again."""
    data = _recorded("cuda/ncu/truths.range.ncu-rep")
    head = read_file_header(data)
    begin = head.offset + head.size
    return data[:begin] + data[begin:] * n


def _ncu_csv(kernels: int) -> Maker:
    """Launches of as many kernels, or each of a kernel of its own (0)."""

    def make(n: int) -> bytes:
        lines = _recorded("cuda/ncu.truths.raw.base-units.csv").decode().splitlines(keepends=True)
        head = next(number for number, line in enumerate(lines) if line.startswith('"ID"')) + 2
        rows = [
            line.split(",", 1)[1].replace("(", f"_{k % (kernels or n)}(", 1)
            for k in range(n)
            for line in lines[head:]
        ]
        return "".join((*lines[:head], *(f'"{number}",{row}' for number, row in enumerate(rows)))).encode()

    return make


# ------------------------------------------------------------ perf, valgrind


def _script(name: str, words: bytes) -> Maker:
    def make(n: int) -> bytes:
        lines = _recorded(f"perf/{name}").splitlines(keepends=True)
        head = next(number for number, line in enumerate(lines) if not line.startswith(b"#"))
        return b"".join(lines[:head]) + _numbered(b"".join(lines[head:]).rstrip() + b"\n\n", words, n)

    return make


def stat_text(n: int) -> bytes:
    """Each time other events, in one table."""
    begin, end = seeds.STAT_TEXT.index(b"        24,"), seeds.STAT_TEXT.index(b"\n          0.0120")
    rows = _numbered(seeds.STAT_TEXT[begin:end], rb"(cycles|instructions|loads)(?=[: \n])", n)
    return seeds.STAT_TEXT[:begin] + rows + seeds.STAT_TEXT[end:]


_EVENTS = rb"cycles|instructions|branch-misses|task-clock|LLC-loads"


def callgrind(n: int) -> bytes:
    """Functions, each called by the one before it."""
    lines = [
        "# callgrind format\nversion: 1\ncreator: callgrind-3\npositions: line\nevents: Ir Dr Dw\nfl=(1) a.c\n"
    ]
    lines += [
        f"fn=({k}) f{k}\n{k} 10 1 1\n+1 1 0 0\ncfn=({k + 1}) f{k + 1}\ncalls=1 {k}\n{k} 9 1 1\n"
        for k in range(1, n)
    ]
    lines.append(f"fn=({n})\n{n} 1 1 1\ntotals: {11 * (n - 1) + 1} {n} {n}\n")
    return "".join(lines).encode()


def cachegrind(n: int) -> bytes:
    """Functions, each in a file of its own."""
    head, _, summary = seeds.CACHEGRIND.partition(b"summary: ")
    rows = b"".join(b"fl=%d.c\nfn=f%d\n10 1 1 1 1 1 1 1 1 1\n" % (k, k) for k in range(n))
    return head + rows + b"summary: " + b" ".join(b"%d" % (int(word) + n) for word in summary.split()) + b"\n"


# ------------------------------------------------------------ Python's and the Mac's


def _profile(calls: Callable[[int, int], Iterator[int]]) -> Maker:
    """A profile of cProfile, in which function k of n is called by `calls(k, n)`."""
    entry = (1, 1, 0.1, 0.2)

    def make(n: int) -> bytes:
        names = [("a.py", k, f"f{k}") for k in range(n)]
        return marshal.dumps(
            {name: (*entry, {names[other]: entry for other in calls(k, n)}) for k, name in enumerate(names)}
        )

    return make


def stacks(n: int) -> bytes:
    """Each time other processes."""
    return b"".join(
        re.sub(rb'"process": "', rb'"process": "%d' % (k + 1), seeds.stack_files()[2]) for k in range(n)
    )


def _table(name: str) -> Maker:
    """A recorded table of xctrace that goes on and on."""

    def make(n: int) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            xctrace_tables.grow(_MAC / f"{name}.xml", Path(file.name), n * 20_000)
            return Path(file.name).read_bytes()

    return make


def _tables(*names: str) -> Maker:
    """A folder with such tables."""
    return lambda n: folders.pack(
        {"toc.xml": xctrace_toc(1), **{f"{name}.xml": _table(name)(n) for name in names}}
    )


def xctrace_toc(n: int) -> bytes:
    """A table of contents, with its tables again and again."""
    return re.sub(
        rb"(?s)<data>(.*?)</data>",
        lambda match: b"<data>%s</data>" % (match[1] * n),
        _recorded("xctrace/m1/toc.xml"),
    )


# ------------------------------------------------------------ our own


def nightly(n: int) -> bytes:
    """Many workloads."""
    rows = "".join(f"  - {{name: w{k}, command: [python, a.py], gates: [time.median]}}\n" for k in range(n))
    return f"version: 1\noutput: nights\nworkloads:\n{rows}".encode()


def targets(n: int) -> bytes:
    """Many targets."""
    return "".join(
        ["targets:\n", *(f"  made{k}: {{metric: ipc, at_least: 0.5, says: x}}\n" for k in range(n))]
    ).encode()


def kernels(n: int) -> bytes:
    """Many kernels."""
    more = (f"\n@kernel('relu{k}.default')\ndef relu{k}(x): return x\n" for k in range(n))
    return seeds.KERNELS + "".join(more).encode()


@functools.cache
def history(n: int) -> bytes:
    """Many entries, one each second."""
    from dataclasses import replace

    from profkit.regression.history.actions import entry_at
    from profkit.regression.history.store import open_history

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "history.sqlite"
        entry = entry_at(seeds.DATA / "cuda" / "nsys" / "hostbound.sqlite")
        with open_history(path) as store:
            for k in range(n):
                store.add(
                    replace(
                        entry,
                        id=f"{entry.id}{k}",
                        started=f"2026-01-01T{k // 3600:02}:{k // 60 % 60:02}:{k % 60:02}+00:00",
                    )
                )
        with closing(sqlite3.connect(path)) as base:
            base.execute("PRAGMA journal_mode = DELETE")
        return path.read_bytes()


# Target -> what its files begin as, and how many times as much is the smaller of the two sizes.
CASES: dict[str, dict[str, tuple[int, Maker]]] = {
    "run": {
        "cpu": (2, lambda n: _json(seeds.runs()[0], n)),
        "trace": (4, lambda n: _json(seeds.runs()[1], n, NAMES)),
        "counters": (2, lambda n: _json(seeds.runs()[2], n, NAMES)),
    },
    "evaluation": {str(k): (n, _documents(seeds.evaluations, k)) for k, n in ((0, 2), (1, 2))},
    "generation": {"": (10, _documents(seeds.generations, 1))},
    "cases": {"": (3, _journal(seeds.cases))},
    "attempts": {"": (10, _journal(seeds.attempts))},
    "sweep": {"": (3, _journal(seeds.sweeps))},
    "history": {"": (10, history)},
    "night-state": {"": (4, _documents(seeds.states, 0))},
    "nightly": {"": (10, nightly)},
    "targets": {"": (60, targets)},
    "kernel-file": {"": (20, kernels)},
    "traces": {"": (10, lambda n: _numbered(seeds.TRACE, rb"T\(\[8", n).replace(b"_", b""))},
    "series": {
        "values": (50, lambda n: seeds.series()[0] * n),
        "named": (50, lambda n: b"# nightly\nseconds\n" + b"0.5\n\n-\n0.25\n" * n),
    },
    "nsys": {"hostbound": (1, _nsys("hostbound")), "graphs": (1, _nsys("graphs.node"))},
    "nsys-stats": {"": (10, nsys_stats)},
    "ncu": {"": (2, ncu_report)},
    "ncu-csv": {"own": (2, _ncu_csv(0)), "same": (3, _ncu_csv(1))},
    "perf-script": {
        "symbols": (2, _script("script.two-events.txt", rb"(?m)^\s+[0-9a-f]+ \w+")),
        "python": (1, _script("script.py313-jit.txt", rb"py::\w+")),
    },
    "perf-stat-csv": {"": (20, lambda n: _numbered(seeds.STAT_CSV, _EVENTS, n))},
    "perf-stat-json": {"": (20, lambda n: _numbered(seeds.STAT_JSON, _EVENTS, n))},
    "perf-stat-text": {"": (20, stat_text)},
    "callgrind": {"": (100, callgrind)},
    "cachegrind": {"": (100, cachegrind)},
    "xctrace": {
        "processor": (1, _tables("time-profile", "time-sample")),
        "device": (3, _tables("metal-gpu-intervals", "metal-gpu-state-intervals", "metal-driver-intervals")),
    },
    "xctrace-table": {"": (6, _table("metal-gpu-intervals")), "samples": (1, _table("time-profile"))},
    "xctrace-toc": {"": (2, xctrace_toc)},
    "torch": {
        "operations": (200, torch_operations),
        "ranges": (150, torch_ranges),
        "streams": (50, torch_streams),
        "recorded": (1, torch_recorded),
    },
    "cprofile": {
        "chain": (100, _profile(lambda k, _: iter(range(max(k - 1, 0), k)))),
        "one called by all": (100, _profile(lambda k, n: iter(range(1, n) if k == 0 else ()))),
        "one calls all": (100, _profile(lambda k, _: iter((0,) if k else ()))),
    },
    "stacks": {"": (1, stacks)},
}
# What is read of these does not grow with the file, or is a part of another target.
BOUNDED = {"perf-data", "cubin", "object", "run-folder"}
