"""`pytest --profkit`: where the time of a whole suite goes. `--profkit-test NAME`: one test under every instrument.

Each process samples itself; with xdist all workers add to one file, of which the process that started them makes a run.
`pytest_plugin.py` has the options.
"""

from __future__ import annotations

import io
import linecache
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic as now
from types import CodeType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from profkit.analysis.stacks.lines import LineTally
    from profkit.analysis.stacks.python_code import PythonSample
    from profkit.core.types import Frame, RunState
    from profkit.fronts.recording import PartSampler
    from profkit.runtime.passes.host.stacks.tree import Function

FILE = "PROFKIT_PYTEST_FILE"  # variable: where workers add their samples
SLOWEST = 10  # tests
PLAIN_RUNS, BUDGET = 5, 10  # times a test's own run, and seconds more, for all instruments of a test
OWN, WAITS = "pytest itself", "waiting for other workers"
# The function of pytest, and its file, that calls each part of a run: the outermost one decides.
_PARTS = {
    "pytest_pyfunc_call": ("_pytest/python.py", "tests"),
    "runtest": ("_pytest/unittest.py", "tests"),
    "call_fixture_func": ("_pytest/fixtures.py", "fixtures"),
    "finish": ("_pytest/fixtures.py", "fixtures"),
    "perform_collect": ("_pytest/main.py", "collection"),
    "_rewrite_test": ("_pytest/assertion/rewrite.py", OWN),
    "loop_once": ("xdist/dsession.py", WAITS),
    "get": ("xdist/remote.py", WAITS),
}


def profile_test(config: pytest.Config, name: str, plugin: str, variable: str) -> int:
    """Let `profkit profile` run one test, with `plugin` and with `variable` set; return its exit code.

    It runs alone first: what all instruments together may take is said in times of that, and a test that fails is none
    to be profiled.
    """
    chosen = [name] if "::" in name or name.endswith(".py") else ["-k", name, *config.args]
    alone = ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    run = [sys.executable, "-m", "pytest", "-q", "-p", plugin, *alone, *chosen]
    begun, folder = now(), config.invocation_params.dir
    if code := subprocess.call(run, cwd=folder):  # no such test, or one that fails: pytest has said which
        return code
    budget = math.ceil(PLAIN_RUNS * (now() - begun) + BUDGET)
    options = ["--name", name.rpartition("::")[2], "--budget", str(budget)]
    words = ["profkit", "profile", *options, "--", *run]
    print(
        f"{budget} s at most for all instruments; with other options:\n$ {variable}=1 {shlex.join(words)}",
        flush=True,
    )
    argv = [sys.executable, "-m", *words]
    # the first run has read what stood at standard input
    return subprocess.call(argv, env={**os.environ, variable: "1"}, cwd=folder, stdin=subprocess.DEVNULL)


class EachTestIsARegion:
    """Of a test that is profiled alone only itself counts."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Mark it."""
        import profkit

        with profkit.region(item.name):
            yield


@dataclass
class MeasuredTest:
    """How long one test took: with its fixtures, and without them."""

    name: str  # pytest's own, with the file
    location: tuple[str, int | None, str]  # file below the root, line, and name within the file
    seconds: float = 0.0
    called: float = 0.0

    def function(self, root: Path) -> tuple[str, str]:
        """Return the file and the name of its function, as samples have them: `TestShop.test_sum`."""
        file, _, name = self.location
        return str(root / file), name.partition("[")[0]


class SampledSuite:
    """The samples of one process, and in the first one what they say."""

    def __init__(self, root: Path) -> None:
        from profkit.fronts.in_process import start
        from profkit.fronts.recording import STACKS

        self._root = root
        self._tests: dict[str, MeasuredTest] = {}  # by the name that pytest gives each
        if FILE in os.environ:  # a worker
            self._sampler = _worker_sampler(os.environ[FILE])
            self._sampler.begin()
            return
        self._recording = start(f"pytest-{root.name}")
        self._file = self._recording.folder / STACKS
        os.environ[FILE] = str(self._file)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a test and its fixtures took; this is called in each test, and keeps what it is given."""
        if getattr(report, "context", None) is not None:
            return  # a subtest: its time is in its test's own, and there may be thousands
        test = self._tests.get(report.nodeid)
        if test is None:
            test = self._tests[report.nodeid] = MeasuredTest(report.nodeid, report.location)
        test.seconds += report.duration
        test.called = report.duration if report.when == "call" else test.called

    def abandon(self) -> None:
        """Sample no more, and say nothing: the option was not meant for this."""
        if not hasattr(self, "_sampler"):
            self._recording.end()
            del os.environ[FILE]

    def pytest_unconfigure(self) -> None:
        """End a worker's samples."""
        if hasattr(self, "_sampler"):
            self._sampler.finish()

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
        """Print where the time went."""
        if hasattr(self, "_sampler"):
            return
        self._recording.end()  # before what reads it is loaded
        del os.environ[FILE]
        if not self._tests:
            return
        from profkit.fronts.in_process import uncollected

        terminalreporter.write_sep("=", "profkit")
        try:
            state: RunState = "interrupted" if exitstatus == pytest.ExitCode.INTERRUPTED else "complete"
            with uncollected():
                page = self._page(state, workers=config.pluginmanager.hasplugin("dsession"))
            terminalreporter.write(page)
        except Exception as fault:  # the tests' own result stands
            terminalreporter.write_line(f"no result: {getattr(fault, 'message', None) or repr(fault)}")

    def _page(self, state: RunState, *, workers: bool) -> str:
        from dataclasses import replace

        from profkit.fronts.in_process import stop

        run = stop(self._recording, state)
        if workers:  # this process waited: that is no split of the suite
            run.document = replace(run.document, time_split=None)
        page = io.StringIO()
        run.show(page, rest="report.html has all of them")
        if not self._recording.reason:
            page.write("\n".join(["", *self._lines(), f"Run: {run.save()}", ""]))
        return page.getvalue()

    def _lines(self) -> Iterator[str]:
        """Yield the parts of the run, and the slowest tests."""
        from profkit.analysis.stacks.lines import LineTally
        from profkit.core.formatting import format_percent, format_quantity
        from profkit.profilers.host.stacks import read_samples

        parts: dict[str, float] = {}
        slow = sorted(self._tests.values(), key=lambda test: -test.seconds)[:SLOWEST]
        wanted = {_last_name(test.function(self._root)) for test in slow}
        tallies: dict[tuple[str, str], LineTally] = {}  # by file and function
        for sample in read_samples(self._file):
            part = part_of(sample)
            parts[part] = parts.get(part, 0.0) + sample.wall
            for key in {_place(frame) for frame in sample.frames if frame is not None}:
                if _last_name(key) in wanted:
                    tallies.setdefault(key, LineTally()).add(sample, "main", "")
        parts.pop(WAITS, None)
        whole = sum(parts.values()) or 1.0
        shares = [
            f"{part} {format_percent(100 * parts[part] / whole)} %"
            for part in sorted(parts, key=parts.__getitem__, reverse=True)
        ]
        yield f"{format_quantity(whole, 's')} of pytest's processes: {', '.join(shares)}"
        yield "Slowest tests, with their fixtures"
        for test in slow:
            yield f"  {format_quantity(test.seconds, 's'):>7}  {test.name}"
            fixtures = test.seconds - test.called
            if fixtures > test.seconds / 2:
                yield f"{'':11}{format_quantity(fixtures, 's')} of it in its fixtures"
                continue
            tally = _tally_of(test.function(self._root), tallies)
            if tally is None:
                continue
            for line in tally.sampled({}, 0.0, 0).lines[:1]:
                text = linecache.getline(line.file or "", line.line or 0).strip()
                place = f"{os.path.relpath(line.file or '', self._root)}:{line.line}"
                yield f"{'':11}{format_percent(100 * line.main_wall / tally.wall)} % at {place}  {text}"


def _worker_sampler(file: str) -> PartSampler:
    from profkit.fronts.recording import PartSampler, PartTree

    class WorkerTree(PartTree):
        """Without the text that xdist starts a worker with: it is no line of the suite."""

        def add_function(self, code: CodeType) -> Function:
            function = super().add_function(code)
            function.hidden = function.hidden or code.co_filename == "<string>"
            return function

    class WorkerSampler(PartSampler):
        def _new_tree(self) -> WorkerTree:
            return WorkerTree()

    return WorkerSampler(file)


def part_of(sample: PythonSample) -> str:
    """Return what of a run the stack of a main thread belongs to."""
    known = [
        _PARTS[name][1]
        for file, name in map(_last_name, map(_place, filter(None, sample.frames)))
        if name in _PARTS and file.endswith(_PARTS[name][0])
    ]
    if None in sample.frames and OWN not in known:
        return "imports"
    return OWN if OWN in known or not known else known[0]


def _tally_of(function: tuple[str, str], tallies: dict[tuple[str, str], LineTally]) -> LineTally | None:
    """Return the samples of a test's function; None where there are none, or where it is not known which are its own.

    Before Python 3.11 a sample names no class, and a test that a class inherits has the name of another one.
    """
    if function in tallies:
        return tallies[function]
    alike = [known for known in tallies if _last_name(known) == _last_name(function)]
    return tallies[alike[0]] if len(alike) == 1 else None


def _place(frame: Frame) -> tuple[str, str]:
    return (frame.file or "").replace(os.sep, "/"), frame.function


def _last_name(place: tuple[str, str]) -> tuple[str, str]:
    """Return a file and the name of a function of it, without that of its class."""
    return place[0], place[1].rpartition(".")[2]
