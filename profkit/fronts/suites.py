"""Benchmarks that are there already, timed by `profkit.benchmark`: what times itself takes as long when it is slower.

python -m pytest -p profkit.fronts.suites FILE...   tests that use pytest-benchmark's fixture
python -m profkit.fronts.suites FILE...             the `time_*` of an asv suite
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType, SimpleNamespace
from typing import Any

import profkit

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
    """Its rounds as they are: what `setup` prepares may be used up by a call."""
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


def run_asv(file: Path) -> int:
    """Time each `time_*` of a file of an asv suite, with each of its parameters; how many there were.

    As asv: `setup` raising NotImplementedError leaves one out; with `number = 1` it runs before each call.
    """
    module, count = _load(file.resolve()), 0
    for name, value in list(vars(module).items()):
        if inspect.isclass(value) and value.__module__ == module.__name__:
            count += sum(
                _time_all(f"{name}.{inner}", value, inner)
                for inner in dir(value)
                if inner.startswith("time_")
            )
        elif name.startswith("time_"):
            count += _time_all(name, value, "__call__")
    return count


def _load(file: Path) -> ModuleType:
    """The file as asv imports it: relative to the folder around its package."""
    top = file.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    sys.path.insert(0, str(top))
    return importlib.import_module(".".join(file.relative_to(top).with_suffix("").parts))


def _time_all(name: str, kind: Any, inner: str) -> int:
    params = list(getattr(kind, "params", []))
    axes = params if params and isinstance(params[0], list | tuple) else [params] if params else []
    count = 0
    for values in itertools.product(*axes):
        holder = kind() if inspect.isclass(kind) else kind
        words = (holder.setup_cache(), *values) if hasattr(holder, "setup_cache") else values
        setup = getattr(holder, "setup", lambda *_: None)
        title = f"{name}({', '.join(map(repr, values))})" if values else name
        with contextlib.suppress(NotImplementedError):
            setup(*words)
            call = partial(getattr(holder, inner), *words)
            if getattr(holder, "number", 0) == 1:
                _pedantic(_asv_fixture(title), call, setup=partial(setup, *words), rounds=ROUNDS)
            else:
                profkit.benchmark(call, name=title)
            getattr(holder, "teardown", lambda *_: None)(*words)
            count += 1
    return count


if __name__ == "__main__":
    if sum(run_asv(Path(word)) for word in sys.argv[1:]) == 0:
        sys.exit("no time_* in these files; python -m profkit.fronts.suites benchmarks/FILE.py")
