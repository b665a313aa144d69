"""What inputs begin as: saved recordings of tests/data, and documents that tests make."""

from __future__ import annotations

import functools
import gzip
import json
import re
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path

from profkit.core.codec import json_text
from profkit.core.run_folder import run_to_json
from profkit.core.types import RunDocument
from profkit.kernels.evaluation.document import evaluation_json
from tests import documents, evaluation_documents, gpu_documents, small_reports, sweep_documents
from tests.fuzz.mutate import pack
from tests.journals import store_sweep

DATA = Path(__file__).parents[1] / "data"
LARGEST = 130_000  # bytes of a recording; larger ones take too long for what more they would find

STAT_CSV = (
    b"# started on Mon Nov 23 05:00:00 2026\n\n"
    b"11.86,msec,task-clock:u,11862000,100.00,0.981,CPUs utilized\n"
    b"0,,context-switches:u,11862000,100.00,0.000,/sec\n"
    b"24017711,,cycles:u,11862000,75.12,2.025,GHz\n"
    b"41202993,,instructions:u,11862000,75.12,1.72,insn per cycle\n"
    b"<not supported>,,cpu_core/LLC-loads/u,0,100.00,,\n"
    b"<not counted>,,branch-misses:u,0,0.00,,\n"
)
STAT_TEXT = b"""
 Performance counter stats for 'python a.py' (5 runs):

             11.86 msec task-clock:u              #    0.981 CPUs utilized            ( +-  0.42% )
        24,017,711      cycles:u                  #    2.025 GHz                      ( +-  0.31% )  (75.12%)
        41,202,993      instructions:u            #    1.72  insn per cycle           ( +-  0.01% )  (75.12%)
   <not supported>      LLC-loads:u

          0.012090 +- 0.000054 seconds time elapsed  ( +-  0.45% )

"""
STAT_JSON = b"".join(
    b'{"counter-value" : "%s", "unit" : "%s", "event" : "%s", "event-runtime" : 11862000, "pcnt-running" : 75.12%s}\n'
    % row
    for row in (
        (b"11.862000", b"msec", b"task-clock:u", b""),
        (
            b"24017711.000000",
            b"",
            b"cycles:u",
            b', "interval" : 1.0001, "cpu" : "0", "metric-value" : "2.025"',
        ),
        (b"<not counted>", b"", b"branch-misses:u", b', "cgroup" : "a"'),
    )
)
TRACE = b"""Operator: aten.embedding.default
cnt: 5, ((T([100, 16], f32), T([4, 8], i64)), {})
cnt: 1, ((T([100, 16], f32), T([4, 8], i64), 3, False), {'scale': -1.5e-3, 'x': inf})
Operator: aten.mm.default
cnt: 2, ((T([8, 16], f16), T([16, 8], f16, stride=(1, 16))), {})  # offsets [0, 16]
Operator: aten.to.dtype_layout
cnt: 1, ((T([8], c64, [1]), None, True, 1 + 2j), {'dtype': torch.float16, 'device': "torch.device('cuda:0')"})
Operator: aten.cat.default
cnt: 7, (([T([], bf16), T([0], b8)], ('a', -nan)), {'memory_format': torch.channels_last})
"""
CALLGRIND, LIBRARY = "callgrind.out", "lib.so"


def recordings(*patterns: str) -> tuple[bytes, ...]:
    """The saved files of those patterns that are not too large."""
    files = sorted(path for pattern in patterns for path in DATA.glob(pattern))
    return tuple(path.read_bytes() for path in files if path.stat().st_size <= LARGEST)


def run_text(document: RunDocument) -> bytes:
    """A run.json."""
    return json_text(run_to_json(document)).encode()


@functools.cache
def runs() -> tuple[bytes, ...]:
    """A run of a CPU, and runs of a GPU."""
    made = documents.document(), gpu_documents.of_trace(), gpu_documents.of_counters(), documents.empty()
    return tuple(run_text(document) for document in made)


def run_folders() -> tuple[bytes, ...]:
    """Runs with what lies beside them."""
    beside = {
        "stacks.speedscope.json": b"""{"shared": {"frames": [{"name": "f", "file": "a.py", "line": 3}]}, "profiles": [
{"type": "sampled", "name": "n", "unit": "seconds", "samples": [[0], [0, 0]], "weights": [0.5, 0.25]}]}""",
        "tracemalloc.json": b'{"schema": "profkit.tracemalloc/2", "peak": 4096, "lines": []}',
        "timing-0.1.json": b'{"schema": "profkit.timing/1", "samples": [0.01], "warmup": [0.02], "iterations": 1}',
        "callgrind.out": recordings("valgrind/list.lines.callgrind")[0],
    }
    artifacts = {f"artifacts/{name}": body for name, body in beside.items()}
    return tuple(pack({"run.json": run, **artifacts}) for run in runs()[:2])


def evaluations() -> tuple[bytes, ...]:
    """Folders of evaluations."""
    made = json_text(evaluation_json(evaluation_documents.every_status())).encode()
    return tuple(
        pack({"evaluation.json": one}) for one in (recordings("evaluations/*/evaluation.json")[0], made)
    )


@functools.cache
def sweeps() -> tuple[bytes, ...]:
    """The folder of a sweep: its journal."""
    made = []
    for document in (sweep_documents.hostile(), *tuple(sweep_documents.odd().values())[:2]):
        with tempfile.TemporaryDirectory() as name:
            from tests.kernels.sweep.small_sweep import request_for

            path = store_sweep(request_for(Path(name), "PyTorch"), tuple(document.results)[:8])
            made.append(pack({path.name: path.read_bytes()}))
    return tuple(made)


@functools.cache
def histories() -> tuple[bytes, ...]:
    """A history with a few runs."""
    from profkit.regression.history.actions import entry_at
    from profkit.regression.history.store import open_history

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "history.sqlite"
        with open_history(path) as history:
            for file in ("hostbound", "graphs.node"):
                history.add(entry_at(DATA / "cuda" / "nsys" / f"{file}.sqlite"))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        return (path.read_bytes(),)


@functools.cache
def nsys_files() -> tuple[bytes, ...]:
    """Exports of nsys, without what is empty in them."""
    made = []
    with tempfile.TemporaryDirectory() as name:
        for file in sorted((DATA / "cuda" / "nsys").glob("*.sqlite")):
            small_reports.small_nsys(file, Path(name) / file.name)
            content = (Path(name) / file.name).read_bytes()
            if len(content) <= LARGEST:
                made.append(content)
    return tuple(made)


@functools.cache
def torch_traces() -> tuple[bytes, ...]:
    """Recorded traces, and the same with every kind of event a few times only."""
    made = []
    for packed in recordings("cuda/torch/*.gz"):
        trace = json.loads(gzip.decompress(packed))
        counts = Counter[tuple[str, str]]()
        few = []
        for event in trace["traceEvents"]:
            kind = str(event.get("ph")), str(event.get("cat"))
            counts[kind] += 1
            if counts[kind] <= 4:
                few.append(event)
        trace["traceEvents"] = few
        made += [gzip.compress(json.dumps(trace).encode(), 1, mtime=0), packed]
    return tuple(made)


def stack_files() -> tuple[bytes, ...]:
    """The samples of a pool of processes, and the first of them."""
    whole = recordings("stacks/pool.jsonl")[0]
    lines = whole.splitlines(keepends=True)
    return b"".join(lines[:3]), b"".join(lines[:12]), whole


def nightly_files() -> tuple[bytes, ...]:
    """Configurations of nights: the one that is shown as an example, and with all of it in use."""
    from profkit.regression.nightly.config import EXAMPLE

    example = EXAMPLE.read_bytes()
    return example, re.sub(rb"(?m)^( *)# (?=(?!targets)[\w.-]+:|- \{)", rb"\1", example)


def traces() -> tuple[bytes, ...]:
    """A trace of calls, and the same compressed."""
    return TRACE, gzip.compress(TRACE)


def series() -> tuple[bytes, ...]:
    """Texts with one value a line."""
    return (b"1.5\n1.6\n1.4\nnan\n1.5e0\n", b"# nightly\nseconds\n0.5\n\n-\n0.25\n")


def objects() -> tuple[bytes, ...]:
    """An object file with the callgrind report that names it."""
    from tests.profilers.valgrind.elf_file import ADDRESS, write_elf

    report = (
        f"positions: instr line\nevents: Ir Dr\nob={LIBRARY}\nfl=a.c\nfn=kernel\n"
        f"{ADDRESS:#x} 10 100 5\n+4 * 10\n+5 +1 7\n+4 * 1\nob=???\nfn=other\n0x10 1 2\n"
    ).encode()
    with tempfile.TemporaryDirectory() as name:
        code = bytes.fromhex("c5f558c2c4e271b9c2660ffec1c3")
        return (pack({CALLGRIND: report, LIBRARY: write_elf(Path(name) / LIBRARY, code).read_bytes()}),)


def cprofiles() -> tuple[bytes, ...]:
    """What cProfile writes."""
    import cProfile

    profile = cProfile.Profile()
    profile.runcall(json.loads, '[1, {"a": [2, 3]}]')
    with tempfile.NamedTemporaryFile() as file:
        profile.dump_stats(file.name)
        return (Path(file.name).read_bytes(),)


def exports() -> tuple[bytes, ...]:
    """Folders of tables that xctrace exported."""
    tables = {path.name: path.read_bytes() for path in sorted((DATA / "xctrace" / "m1").glob("*.xml"))}
    small = {name: body for name, body in tables.items() if len(body) < 20_000}
    processor = {name: tables[name] for name in ("toc.xml", "time-profile.xml")}
    return pack(processor), pack(small)
