"""Benchmarks that are there already, timed by `profkit.benchmark`: what times itself takes as long when it is slower.

python -m pytest -p profkit.fronts.suites FILE...   tests that use pytest-benchmark's fixture
python -m profkit.fronts.suites FILE...             the `time_*` of an asv suite
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType, SimpleNamespace
from typing import Any

import profkit

_ASV_NAME = re.compile(r"time_.|Time[A-Z_].")
ROUNDS = 10  # as asv repeats what is prepared before each call


def pytest_cmdline_main(config: Any) -> None:
    """Let benchmarks run, in this process, whatever `addopts` of the project says.

    Its configuration often has `--benchmark-disable`, since tests shall be quick, or `-n auto`, with which
    pytest-benchmark leaves benchmarks out.
    """
    options = vars(config.option)
    for name, value in {
        "benchmark_disable": False,
        "benchmark_skip": False,
        "numprocesses": 0,
        "dist": "no",
        "tx": [],
    }.items():
        if name in options:  # else that plugin is not there
            options[name] = value


def pytest_configure(config: Any) -> None:
    """Let pytest-benchmark's fixture time by `profkit.benchmark`; its own loop, which fills a time, does not run."""
    if config.pluginmanager.hasplugin("benchmark"):
        fixture = importlib.import_module("pytest_benchmark.fixture").BenchmarkFixture
        fixture.__call__, fixture.pedantic = _call, _pedantic


def _call(self: Any, function: Callable[..., Any], /, *words: Any, **named: Any) -> Any:
    self._mode = "benchmark(...)"
    profkit.benchmark(lambda: function(*words, **named), name=self.name)
    stats, begun = _stats_of(self, 1), perf_counter()
    result = function(*words, **named)
    stats.update(perf_counter() - begun)
    return result


def _stats_of(fixture: Any, iterations: int) -> Any:
    """Return the fixture's own statistics, which a test may ask; they stand in no table of pytest-benchmark's."""
    fixture._add_stats = lambda _: None
    return fixture._make_stats(iterations)


def _asv_fixture(name: str) -> SimpleNamespace:
    """Return what stands for the fixture of pytest-benchmark where an asv suite is timed, which asks no statistics."""
    return SimpleNamespace(name=name, _make_stats=lambda _: SimpleNamespace(update=lambda _: None))


def _pedantic(self: Any, target: Any, args: Any = (), kwargs: Any = None, **more: Any) -> Any:
    """Run the given rounds unchanged: a call may use up what `setup` prepares."""
    self._mode = "benchmark.pedantic(...)"
    setup, teardown, iterations = more.get("setup"), more.get("teardown"), more.get("iterations", 1)
    warm, result = more.get("warmup_rounds", 0), None
    stats = _stats_of(self, iterations)
    for number in range(warm + more.get("rounds", 1)):
        words, named = (setup() if setup is not None else None) or (args, kwargs or {})
        begun = perf_counter()
        with contextlib.nullcontext() if number < warm else profkit.region(self.name):
            for _ in range(iterations):
                result = target(*words, **named)
        if number >= warm:
            stats.update(perf_counter() - begun)
        if teardown is not None:
            teardown(*words, **named)
    return result


@dataclass
class AsvSuite:
    """What was timed of the files of a suite: how many benchmarks, and what each that raised said."""

    timed: int = 0
    failed: list[str] = field(default_factory=list)

    def run(self, file: Path) -> None:
        """Time each benchmark of a file, with each of its parameters, by asv's rules of what is one.

        Abstract classes and what is marked `skip_benchmark` are none. `setup` raising NotImplementedError leaves one
        out; with `number = 1` it runs before each call. One that raises anything else is one failure.
        """
        module = _load(file.resolve())
        for name, value in list(vars(module).items()):
            if (
                inspect.isclass(value)
                and value.__module__ == module.__name__
                and not inspect.isabstract(value)
            ):
                for inner, function in inspect.getmembers(value, inspect.isroutine):
                    if _is_benchmark(inner, function):
                        self._time_all(f"{name}.{inner}", function, module, value)
            elif inspect.isfunction(value) and _is_benchmark(name, value):
                self._time_all(name, value, module)

    def _time_all(self, name: str, function: Any, module: ModuleType, kind: type | None = None) -> None:
        """Time one benchmark with each of its parameters; each has an object of its class to itself."""
        params = list(_first((function, kind, module), "params", []))
        axes = params if params and isinstance(params[0], list | tuple) else [params] if params else []
        skipped = [tuple(values) for values in getattr(function, "skip_params", ())]
        cached: tuple[Any, ...] | None = None
        for values in itertools.product(*axes):
            title = f"{name}({', '.join(map(repr, values))})" if values else name
            if values in skipped:
                continue
            try:
                holder = kind() if kind is not None else None
                if cached is None:
                    made = _first((function, holder, module), "setup_cache", lambda: None)()
                    cached = (made,) if made is not None else ()
                self._time_one(title, function, holder, module, (*cached, *values))
            except NotImplementedError:
                continue
            except Exception as error:
                traceback.print_exc()
                self.failed.append(f"{title}: {type(error).__name__}: {error}")

    def _time_one(
        self, title: str, function: Any, holder: object | None, module: ModuleType, words: tuple[Any, ...]
    ) -> None:
        """Time one benchmark with one set of parameters, between what prepares it and what clears up behind it."""
        sources = [source for source in (module, holder, function) if source is not None]
        setups, teardowns = ([hook for source in order if callable(hook := getattr(source, name, None))]
                             for name, order in (("setup", sources), ("teardown", sources[::-1])))  # fmt: skip

        def prepare() -> None:
            for hook in setups:
                hook(*words)

        prepare()
        own = function if holder is None else getattr(holder, title.partition("(")[0].rpartition(".")[2])
        call = partial(own, *words)
        if _first((function, holder, module), "number", 0) == 1:
            _pedantic(_asv_fixture(title), call, setup=prepare, rounds=ROUNDS)
        else:
            profkit.benchmark(call, name=title)
        for hook in teardowns:
            hook(*words)
        self.timed += 1

    def ending(self) -> str | None:
        """Return why the process ends with 1; None where all is well."""
        if self.failed:
            every = len(self.failed) + self.timed
            return f"{len(self.failed)} of {every} benchmarks failed: {'; '.join(self.failed)[:500]}"
        usage = "no time_* in these files; python -m profkit.fronts.suites benchmarks/FILE.py"
        return None if self.timed else usage


def _is_benchmark(name: str, function: Any) -> bool:
    return _ASV_NAME.match(name) is not None and not getattr(function, "skip_benchmark", False)


def _first(sources: Iterable[object | None], name: str, default: Any) -> Any:
    """Return the attribute of the first of the function, its class and its module that has it."""
    return next((getattr(source, name) for source in sources if hasattr(source, name)), default)


def _load(file: Path) -> ModuleType:
    """Return the file as asv imports it: relative to the folder around its package."""
    top = file.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    sys.path.insert(0, str(top))
    return importlib.import_module(".".join(file.relative_to(top).with_suffix("").parts))


if __name__ == "__main__":
    suite = AsvSuite()
    for word in sys.argv[1:]:
        suite.run(Path(word))
    sys.exit(suite.ending())
