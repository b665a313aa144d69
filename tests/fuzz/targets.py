"""One target per reader and per folder: what its inputs begin as, how they are changed, and what reads them."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import ProfkitError
from tests.fuzz import folders, mutate, seeds

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
            folders.write(data, path)
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


def _show(path: Path, depth: int, *forms: str) -> None:
    from profkit.profiling.export import ExportOptions, export
    from profkit.profiling.scrub import scrub
    from profkit.profiling.summarize import read_report as read_one
    from profkit.profiling.summarize import summarize_report

    if depth < SHOW:
        if depth == READ and not path.is_dir() and path.name != "run.json":
            read_one(path)
        else:
            summarize_report(path)
        return
    for form in ("terminal", "html", *forms):
        try:
            for _ in export(ExportOptions((path,), form)).pieces:
                pass
        except ProfkitError:
            continue
    output = path.with_name("copy")
    try:
        scrub(path, output)
    finally:
        if output.is_dir():
            shutil.rmtree(output)
        output.unlink(missing_ok=True)


def read_report(path: Path, depth: int) -> None:
    """As `profkit summarize`, and now and then `report` and `scrub`."""
    _show(path, depth, "json")


def read_generation(path: Path, depth: int) -> None:
    """As `profkit report` of a generation."""
    from profkit.kernels.generation_document import read_generation as read
    from profkit.profiling.export import ExportOptions, export

    read(path)
    for form in ("markdown", "html") if depth == SHOW else ():
        for _ in export(ExportOptions((path,), form)).pieces:
            pass


def read_attempts(path: Path, depth: int) -> None:
    """As `generate --resume`, and its document."""
    from profkit.execution.journal import open_journal
    from profkit.generation import request as journals

    journals.read_generation(path)
    if depth > READ:
        open_journal(path, journals.FORMAT, {}).close()


def read_cases(path: Path, depth: int) -> None:
    """As `evaluate --resume` begins, and its document."""
    from profkit.execution.journal import open_journal
    from profkit.kernels.evaluation import request as journals

    journals.read_request(path)
    journals.read_document(path)
    if depth > READ:
        open_journal(path, journals.FORMAT, {}).close()


def read_sweep(path: Path, depth: int) -> None:
    """As `profkit report` of a sweep."""
    from profkit.kernels.sweep.request import read_sweep as read
    from profkit.profiling.export import ExportOptions, export

    read(path)
    for form in ("terminal",) if depth == SHOW else ():
        for _ in export(ExportOptions((path,), form)).pieces:
            pass


def read_history(path: Path, depth: int) -> None:
    """All that is in it, and changes of it."""
    from profkit.regression.history.store import open_history

    try:
        with open_history(path, read_only=True) as history:
            entries = history.entries()
            history.series()
            history.confirmed()
            history.accepted()
        if entries and depth > READ:
            with open_history(path) as history:
                history.mark(entries[0].id, False, "why")
                history.prune([entries[-1].id])
    finally:
        for log in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + log).unlink(missing_ok=True)


def read_night(path: Path, depth: int) -> None:
    """As `profkit nightly FILE --plan` begins."""
    from profkit.regression.nightly.config import read_config

    read_config(path)


def read_state(path: Path, depth: int) -> None:
    """As `nightly` of a night that was begun, which goes on with what it read."""
    from profkit.regression.nightly import session

    for folder in sorted(path.iterdir()):
        state = session.read_state(folder)
        if state is not None:
            session.write_state(folder, state)
            session.read_state(folder)


def read_bisection(path: Path, depth: int) -> None:
    """As `bisect --resume` reads its folder, works out the next step, and shows it at its end."""
    from math import log

    from profkit.regression.bisect.measure import observed
    from profkit.regression.bisect.search import Move, Rules, is_enough, next_move
    from profkit.regression.bisect.state import read_state
    from profkit.reporting import terminal
    from profkit.reporting.html.page import render as page
    from profkit.reporting.views.bisect import view

    document = read_state(path)
    rules = Rules(document.options.certainty, log(1 + document.options.floor))
    for search in document.searches:
        places = {commit: place for place, commit in enumerate((search.good, *search.commits))}
        steps = [(step.pairs, places[step.earlier], places[step.later]) for step in search.steps]
        seen = [observed(pairs, steps[0][0], earlier, later) for pairs, earlier, later in steps]
        skipped = frozenset(places[one.commit] for one in search.skipped)
        if seen:
            next_move(len(search.commits), skipped, seen, rules)
            last = Move(seen[-1].earlier, seen[-1].later)
            is_enough(last, len(search.commits), skipped, seen, rules)
    terminal.render(view(document, "folder"))
    page(view(document, "folder"))


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


def read_kernel_file(path: Path, depth: int) -> None:
    """What is read of a file with kernels before it is run in a process of its own."""
    from profkit.kernels.evaluation.sources.text import LoadError, read_text

    try:
        read_text(path).implementations()
    except LoadError as error:  # which its caller shows
        raise ProfkitError(str(error), None) from error


def read_perf_data(path: Path, depth: int) -> None:
    """What profkit itself reads of a perf.data; the rest is left to perf."""
    from profkit.profilers.perf.perf_data import recorded_pids

    recorded_pids(path)


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


def read_cubin(path: Path, depth: int) -> None:
    """The machine code inside a report of ncu."""
    from profkit.profilers.ncu.cubin import INSTRUCTION_BYTES, read_kernel_code

    code = read_kernel_code(path.read_bytes(), seeds.SYMBOL)
    for offset in range(0, min(len(code.code), 4096) if code is not None else 0, INSTRUCTION_BYTES):
        assert code is not None
        code.instruction(offset)
        code.line(offset)


def read_series(path: Path, depth: int) -> None:
    """As `detect FILE`."""
    from profkit.regression.trends import read_series_file

    read_series_file(path)


def read_targets(path: Path, depth: int) -> None:
    """As `--targets FILE`."""
    from profkit.analysis.targets.load import load_targets

    load_targets(None, path, "a")


def _report(name: str, made: Callable[[], Sequence[bytes]], mutator: mutate.Mutator, file: str) -> Target:
    return Target(name, made, mutator, read_report, file)


def _recorded(*patterns: str) -> Callable[[], Sequence[bytes]]:
    return lambda: seeds.recordings(*patterns)


TARGETS = {
    target.name: target
    for target in (
        _report("run", seeds.runs, mutate.mutate_json, "run.json"),
        Target("run-folder", seeds.run_folders, mutate.mutate_folder, read_report, "run", True),
        Target("evaluation", seeds.evaluations, mutate.mutate_folder, read_report, "evaluation", True),
        Target("cases", seeds.cases, mutate.mutate_folder, read_cases, "evaluation", True),
        Target("generation", seeds.generations, mutate.mutate_folder, read_generation, "generation", True),
        Target("attempts", seeds.attempts, mutate.mutate_folder, read_attempts, "generation", True),
        Target("sweep", seeds.sweeps, mutate.mutate_folder, read_sweep, "sweep", True),
        Target("history", seeds.histories, mutate.mutate_sqlite, read_history, "history.sqlite"),
        Target("nightly", seeds.nightly_files, mutate.mutate_text, read_night, "nightly.yaml"),
        Target("night-state", seeds.states, mutate.mutate_folder, read_state, "nights", True),
        Target("bisection", seeds.bisections, mutate.mutate_folder, read_bisection, "bisection", True),
        Target("traces", seeds.traces, mutate.mutate_packed_text, read_traces, "mine.txt"),
        Target("kernel-file", lambda: (seeds.KERNELS,), mutate.mutate_text, read_kernel_file, "kernels.py"),
        Target("series", seeds.series, mutate.mutate_text, read_series, "series.csv"),
        Target("targets", lambda: (seeds.TARGETS,), mutate.mutate_text, read_targets, "targets.yaml"),
        Target("perf-data", seeds.perf_recordings, mutate.mutate_bytes, read_perf_data, "perf.data"),
        Target("object", seeds.objects, mutate.mutate_folder, read_object, "objects", True),
        Target("cubin", seeds.cubins, mutate.mutate_bytes, read_cubin, "kernel.cubin"),
        _report("nsys", seeds.nsys_files, mutate.mutate_sqlite, "r.sqlite"),
        _report("nsys-stats", _recorded("cuda/nsys/stats/*.csv"), mutate.mutate_text, "r.csv"),
        _report("ncu", seeds.ncu_files, mutate.mutate_bytes, "r.ncu-rep"),
        _report("ncu-csv", _recorded("cuda/*.csv"), mutate.mutate_text, "r.csv"),
        _report("perf-script", _recorded("perf/script.*"), mutate.mutate_text, "r.txt"),
        _report("perf-stat-csv", lambda: (seeds.STAT_CSV,), mutate.mutate_text, "r.csv"),
        _report("perf-stat-text", lambda: (seeds.STAT_TEXT,), mutate.mutate_text, "r.txt"),
        _report("perf-stat-json", lambda: (seeds.STAT_JSON,), mutate.mutate_json, "r.json"),
        _report("callgrind", _recorded("valgrind/*.callgrind"), mutate.mutate_text, "r.out"),
        _report("cachegrind", lambda: (seeds.CACHEGRIND,), mutate.mutate_text, "r.out"),
        Target("xctrace", seeds.exports, mutate.mutate_folder, read_report, "exports", True),
        _report("xctrace-table", _recorded("xctrace/m1/metal-*.xml"), mutate.mutate_text, "r.xml"),
        _report("xctrace-toc", _recorded("xctrace/m1/toc.xml"), mutate.mutate_text, "r.xml"),
        _report("torch", seeds.torch_traces, mutate.mutate_packed, "r.json.gz"),
        _report("cprofile", seeds.cprofiles, mutate.mutate_bytes, "r.prof"),
        _report("stacks", seeds.stack_files, mutate.mutate_json, "r.jsonl"),
    )
}
