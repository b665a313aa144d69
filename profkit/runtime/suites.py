"""Benchmarks that are there already, timed by `profkit.benchmark`: what times itself takes as long when it is slower.

python -m pytest -p profkit.runtime.suites FILE...   tests that use pytest-benchmark's fixture
python -m profkit.runtime.suites FILE...             the `time_*` of an asv suite
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import profkit

# ---------------------------------------------------------------- pytest-benchmark


def pytest_configure(config: Any) -> None:
    """Let its fixture time by `profkit.benchmark`; its own loop, whose length is a time, does not run."""
    if not config.pluginmanager.hasplugin("benchmark"):
        return
    fixture = importlib.import_module("pytest_benchmark.fixture").BenchmarkFixture
    fixture.__call__, fixture.pedantic = _call, _pedantic


def _call(self: Any, function: Callable[..., Any], /, *words: Any, **named: Any) -> Any:
    self._mode = "benchmark(...)"
    profkit.benchmark(lambda: function(*words, **named), name=self.name)
    return function(*words, **named)


def _pedantic(
    self: Any,
    target: Callable[..., Any],
    args: Any = (),
    kwargs: Any = None,
    setup: Callable[[], Any] | None = None,
    teardown: Callable[..., Any] | None = None,
    rounds: int = 1,
    warmup_rounds: int = 0,
    iterations: int = 1,
) -> Any:
    """Its rounds as they are: what it prepares may be used up by a call."""
    self._mode = "benchmark.pedantic(...)"
    result = None
    for number in range(warmup_rounds + rounds):
        words, named = (setup() if setup is not None else None) or (args, kwargs or {})
        if number < warmup_rounds:
            result = target(*words, **named)
        else:
            with profkit.region(self.name):
                for _ in range(iterations):
                    result = target(*words, **named)
        if teardown is not None:
            teardown(*words, **named)
    return result


# ---------------------------------------------------------------- asv


def run_asv(file: Path) -> int:
    """Time each `time_*` of a file of an asv suite, with each of its parameters; how many there were.

    As asv: `setup` raising NotImplementedError leaves one out; with `number = 1` it runs before each call.
    """
    module = _load(file)
    count = 0
    for name, make in _benchmarks(module):
        for values in itertools.product(*_parameters(make()[0])):
            count += _time(f"{name}({', '.join(map(repr, values))})" if values else name, make, values)
    return count


def _load(file: Path) -> ModuleType:
    """The file as asv imports it: relative to the folder around its package."""
    top = file.resolve().parent
    while (top / "__init__.py").is_file():
        top = top.parent
    sys.path.insert(0, str(top))
    return importlib.import_module(".".join(file.resolve().relative_to(top).with_suffix("").parts))


def _benchmarks(module: ModuleType) -> Iterator[tuple[str, Callable[[], tuple[Any, Any]]]]:
    """By name what makes one anew: the holder of its setup and parameters, and the function."""
    for name, value in list(vars(module).items()):
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            for inner in sorted(each for each in dir(value) if each.startswith("time_")):

                def make(kind: Any = value, inner: str = inner) -> tuple[Any, Any]:
                    made = kind()
                    return made, getattr(made, inner)

                yield f"{name}.{inner}", make
        elif name.startswith("time_") and callable(value):
            yield name, partial(tuple, (value, value))


def _parameters(holder: Any) -> list[list[Any]]:
    params = list(getattr(holder, "params", []))
    return params if params and isinstance(params[0], list | tuple) else [params] if params else []


def _time(name: str, make: Callable[[], tuple[Any, Any]], values: tuple[Any, ...]) -> int:
    holder, function = make()
    cached = getattr(holder, "setup_cache", None)
    words = (cached(), *values) if cached is not None else values
    setup = getattr(holder, "setup", None)
    prepare = (lambda: setup(*words)) if setup is not None else None
    try:
        if prepare is not None:
            prepare()
    except NotImplementedError:
        return 0
    again = prepare if getattr(holder, "number", 0) == 1 else None
    profkit.benchmark(lambda: function(*words), name=name, setup=again)
    if hasattr(holder, "teardown"):
        holder.teardown(*words)
    return 1


if __name__ == "__main__":
    if sum(run_asv(Path(word)) for word in sys.argv[1:]) == 0:
        sys.exit("no time_* in these files; python -m profkit.runtime.suites benchmarks/FILE.py")
