"""The options `--profkit` and `--profkit-test` of pytest: every pytest of the environment loads this, and nothing else.

What the options do is in `pytest_suite.py`, which is loaded when one of them is given. Without them no fault of ours
ends a run: not a broken package that profkit needs, and not another plugin's option of the same name.
Works with pytest 6.2 and pluggy 0.13, and with later ones.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

import pytest  # this and the above are loaded by it, so they cost nothing

TYPE_CHECKING = False  # what type checkers take for true; importing typing is not needed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

DEEP = "PROFKIT_PYTEST_DEEP"  # variable: `profkit profile` runs this, and each test is a region
SUITE, TEST = "--profkit", "--profkit-test"
_PLACES = {SUITE: "profkit_suite", TEST: "profkit_test_name"}  # where pytest keeps them


@pytest.hookimpl(hookwrapper=True)  # wrapper=True came with pluggy 1.2
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Iterator[None]:
    """Sample from before the first conftest on, and add the options when all others are known."""
    given = _of_nobody(parser, args)
    known = early_config.known_args_namespace
    suite = None
    is_worker = getattr(known, _PLACES[SUITE], False)
    if is_worker or DEEP in os.environ or (SUITE in given and TEST not in given):
        suite = _begin(early_config)
    yield
    ours = _of_nobody(parser, [*_PLACES] if getattr(known, "help", False) else args)
    _add_options(parser, ours)
    if suite is not None and SUITE in given - ours:  # it is a conftest's
        early_config.pluginmanager.unregister(suite)
        suite.abandon()


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Hand one test over to `profkit profile`, which runs it in separate processes."""
    name = getattr(config.option, _PLACES[TEST], None)
    if name is None:
        return None
    from profkit.fronts.pytest_suite import profile_test

    return profile_test(config, name, __name__, DEEP)


def _of_nobody(parser: pytest.Parser, words: Sequence[str]) -> set[str]:
    """Return which of the two options are among these words of a command line and belong to no plugin and no conftest.

    Only they are ever added: where two have an option of one name, pytest does not start.
    """
    if not any(str(word).startswith((SUITE, "@")) for word in words):  # @: pytest reads words from a file
        return set()
    try:
        unknown = parser.parse_known_and_unknown_args(words)[1]
    except Exception:  # pytest itself says what is wrong with the words
        return set()
    return {word.partition("=")[0] for word in unknown} & _PLACES.keys()


def _add_options(parser: pytest.Parser, names: Collection[str]) -> None:
    if not names:
        return
    group = parser.getgroup("profkit", "where the time goes")
    if SUITE in names:
        group.addoption(
            SUITE,
            action="store_true",
            dest=_PLACES[SUITE],
            help="Show where the time of the suite goes, by part, line and slow test.",
        )
    if TEST in names:
        group.addoption(
            TEST,
            metavar="NAME",
            dest=_PLACES[TEST],
            help="Profile one test with every profiler: tests/test_a.py::test_b, or a part of its name.",
        )


def _begin(config: pytest.Config) -> Any:
    """Return the registered plugin that does what was asked for, or one that says why it cannot be done."""
    finder = _PlainModules()
    sys.meta_path.insert(0, finder)  # before pytest's own
    config.add_cleanup(lambda: sys.meta_path.remove(finder))
    try:
        from profkit.fronts.pytest_suite import EachTestIsARegion, SampledSuite

        plugin: Any = EachTestIsARegion() if os.environ.pop(DEEP, None) else SampledSuite(config.rootpath)
    except Exception as fault:
        plugin = _Fault(f"{SUITE}: profkit cannot be loaded: {type(fault).__name__}: {fault}")
    config.pluginmanager.register(plugin)
    return plugin


class _PlainModules:
    """Finds profkit's own modules before pytest does.

    pytest rewrites the assert statements of every package that has a plugin, and it does so anew after each
    installation and wherever no byte code is written: 300 files of this one, two seconds at the end of a run.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Find the module as Python itself does; None for what is not profkit's."""
        return PathFinder.find_spec(name, path, target) if name.startswith("profkit.") else None


class _Fault:
    """Ends pytest with a sentence, once it is certain that the option was meant for profkit."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def pytest_cmdline_main(self) -> None:
        """Refuse."""
        raise pytest.UsageError(self._sentence)

    def abandon(self) -> None:
        """Do nothing, because nothing has begun."""
