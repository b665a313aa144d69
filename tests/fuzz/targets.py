"""One target per reader and per folder: what its inputs begin as, how they are changed, and what reads them."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from profkit.core.errors import ProfkitError
from tests.fuzz import mutate, seeds

# Of so many inputs one is judged too, and of so many one is shown in all forms and scrubbed.
JUDGED, SHOWN = 8, 128
READ, JUDGE, SHOW = range(3)


@dataclass(frozen=True)
class Target:
    """Something that reads files of others. `read` is called with the path and how much to do of it."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    mutate: mutate.Mutator
    read: Callable[[Path, int], None]
    file: str = "input"
    is_folder: bool = False

    def try_input(self, data: bytes, folder: Path, depth: int | None = None) -> bool:
        """Whether it was read; False where it was refused. Any exception but a ProfkitError is a finding."""
        path = folder / self.file
        if self.is_folder:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            for name, body in mutate.unpack(data).items():
                with suppress(OSError):  # a file where another one has its folder
                    (path / name).parent.mkdir(exist_ok=True)
                    (path / name).write_bytes(body)
        else:
            path.write_bytes(data)
        if depth is None:
            drawn = zlib.crc32(data)
            depth = SHOW if drawn % SHOWN == 0 else JUDGE if drawn % JUDGED == 0 else READ
        try:
            self.read(path, depth)
        except ProfkitError:
            return False
        return True


def _export(path: Path, form: str) -> None:
    from profkit.profiling.export import ExportOptions, export

    export(ExportOptions(path, form))


def read_report(path: Path, depth: int) -> None:
    """As `profkit summarize`, and now and then `report` and `scrub`."""
    from profkit.profiling.scrub import scrub
    from profkit.profiling.summarize import read_report as read_one
    from profkit.profiling.summarize import summarize_report

    if depth < SHOW:
        if depth == READ and not path.is_dir() and path.name != "run.json":
            read_one(path)
        else:
            summarize_report(path)
        return
    for form in ("terminal", "html", "json"):
        with suppress(ProfkitError):
            _export(path, form)
    output = path.with_name("copy")
    try:
        scrub(path, output)
    finally:
        if output.is_dir():
            shutil.rmtree(output)
        output.unlink(missing_ok=True)


def _reads(function: str, *forms: str) -> Callable[[Path, int], None]:
    """What calls that function of profkit's, and now and then shows the file in these forms."""

    def read(path: Path, depth: int) -> None:
        module, _, name = function.rpartition(".")
        getattr(import_module(f"profkit.{module}"), name)(path)
        for form in forms if depth == SHOW else ():
            _export(path, form)

    return read


def read_history(path: Path, depth: int) -> None:
    """All that is in it, and changes of it."""
    from profkit.regression.history.store import open_history

    try:
        with open_history(path, read_only=True) as history:
            entries = history.entries()
            history.series()
            history.accepted()
        if entries and depth > READ:
            with open_history(path) as history:
                history.decide(entries[0].id, "pass")
                history.prune([entries[-1].id])
    finally:
        for log in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + log).unlink(missing_ok=True)


def read_traces(path: Path, depth: int) -> None:
    """The calls of a trace that `evaluate` takes, and now and then the same compressed."""
    from profkit.kernels.evaluation.suites.notation import NotationError, parse_call, write_trace
    from profkit.kernels.evaluation.suites.notation import read_traces as read

    calls = read(path)
    for call in calls:
        try:
            parse_call(call.arguments)
        except NotationError:
            continue
    if depth > READ:
        path.write_bytes(gzip.compress(write_trace(calls).encode()))
        read(path)


def read_object(path: Path, depth: int) -> None:
    """A callgrind report, and the object file that it names."""
    from profkit.profilers.valgrind.instructions import instruction_mix

    report, library = path / seeds.CALLGRIND, path / seeds.LIBRARY
    if report.is_file():
        name = seeds.LIBRARY.encode()
        report.write_bytes(report.read_bytes().replace(name, str(library).encode()))
    mix = instruction_mix(report)
    if mix is not None:
        mix.counters()


def _report(name: str, made: Callable[[], Sequence[bytes]], mutator: mutate.Mutator, file: str) -> Target:
    return Target(name, made, mutator, read_report, file)


def _recorded(*patterns: str) -> Callable[[], Sequence[bytes]]:
    return lambda: seeds.recordings(*patterns)


READ_SWEEP = _reads("kernels.sweep.request.read_sweep", "terminal")
READ_NIGHT = _reads("regression.nightly.config.read_config")
READ_SERIES = _reads("regression.trends.read_series_file")

TARGETS = {
    target.name: target
    for target in (
        _report("run", seeds.runs, mutate.mutate_json, "run.json"),
        Target("run-folder", seeds.run_folders, mutate.mutate_folder, read_report, "run", True),
        Target("evaluation", seeds.evaluations, mutate.mutate_folder, read_report, "evaluation", True),
        Target("sweep", seeds.sweeps, mutate.mutate_folder, READ_SWEEP, "sweep", True),
        Target("history", seeds.histories, mutate.mutate_sqlite, read_history, "history.sqlite"),
        Target("nightly", seeds.nightly_files, mutate.mutate_text, READ_NIGHT, "nightly.yaml"),
        Target("traces", seeds.traces, mutate.mutate_packed_text, read_traces, "mine.txt"),
        Target("series", seeds.series, mutate.mutate_text, READ_SERIES, "series.csv"),
        Target("object", seeds.objects, mutate.mutate_folder, read_object, "objects", True),
        _report("nsys", seeds.nsys_files, mutate.mutate_sqlite, "r.sqlite"),
        _report("nsys-stats", _recorded("cuda/nsys/stats/*.csv"), mutate.mutate_text, "r.csv"),
        _report("ncu", _recorded("cuda/ncu/*.ncu-rep"), mutate.mutate_bytes, "r.ncu-rep"),
        _report("ncu-csv", _recorded("cuda/*.csv"), mutate.mutate_text, "r.csv"),
        _report("perf-script", _recorded("perf/script.*"), mutate.mutate_text, "r.txt"),
        _report("perf-stat-csv", lambda: (seeds.STAT_CSV,), mutate.mutate_text, "r.csv"),
        _report("perf-stat-text", lambda: (seeds.STAT_TEXT,), mutate.mutate_text, "r.txt"),
        _report("perf-stat-json", lambda: (seeds.STAT_JSON,), mutate.mutate_json, "r.json"),
        _report("callgrind", _recorded("valgrind/*.callgrind"), mutate.mutate_text, "r.out"),
        Target("xctrace", seeds.exports, mutate.mutate_folder, read_report, "exports", True),
        _report("torch", seeds.torch_traces, mutate.mutate_packed, "r.json.gz"),
        _report("cprofile", seeds.cprofiles, mutate.mutate_bytes, "r.prof"),
        _report("stacks", seeds.stack_files, mutate.mutate_json, "r.jsonl"),
    )
}
