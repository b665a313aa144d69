"""The suite `opinfo`: samples of torch's database of operations that become a single call of aten.

The database (`torch.testing._internal`) is loaded on request. Samples are drawn with torch's global random
numbers: those of an entry from its start on, under one seed.
"""

from __future__ import annotations

import json
import random
import shlex
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import islice
from typing import Any

import torch

from profkit.core.errors import MachineError
from profkit.core.types import EvaluationTest, Fact
from profkit.core.types.readings import Json
from profkit.kernels import disk_cache
from profkit.kernels.evaluation.suites.capture import capture_arguments, describe_call, find_only_call
from profkit.kernels.evaluation.suites.notation import SHORT_DTYPES, NotationError, format_call
from profkit.kernels.evaluation.suites.suite import (
    Arguments,
    Selection,
    Skip,
    check_dtype,
    check_names,
    make_test,
    matches,
)
from profkit.kernels.evaluation.suites.values import check_decidable

FIRST_SEED = 20250815  # of the samples before the one that is wanted, and of a list of them
_MODULE = "torch.testing._internal.common_methods_invocations"
_WIDE = 2**63 - 1


@dataclass(frozen=True)
class EntryKey:
    """The key of an entry: several have the same name and differ in their variant."""

    name: str
    variant: str


@cache
def load_entries() -> dict[EntryKey, Any]:
    """Load all entries by their keys, in torch's order. Raises ImportError where this torch lacks them.

    Importing them takes some seconds, and freezes torch's global flags: that is undone.
    """
    frozen = torch.backends.flags_frozen()
    stand_in = "expecttest" not in sys.modules and find_spec("expecttest") is None
    if stand_in:  # torch takes no more of it than a base class for its own tests
        module = types.ModuleType("expecttest")
        module.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            database = __import__(_MODULE, fromlist=["op_db"]).op_db
    finally:
        if stand_in:
            del sys.modules["expecttest"]
        if not frozen:
            torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True
    return {EntryKey(entry.name, entry.variant_test_name): entry for entry in database}


def _seed_all(seed: int) -> None:
    """Seed the random numbers of torch on the CPU, of Python, and of NumPy if it is loaded."""
    torch.default_generator.manual_seed(seed & _WIDE)  # torch.manual_seed seeds other devices, too: 2 ms
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


@contextmanager
def quiet_random_numbers(seed: int | None = None) -> Iterator[None]:
    """Seed random numbers and silence warnings for the block; the generators' states are restored after it."""
    numpy = sys.modules.get("numpy")
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
    if seed is not None:
        _seed_all(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])


def list_samples(entry: Any, dtype: torch.dtype, visit: Callable[[int, Callable[[], Any]], None]) -> None:
    """Call `visit` with number and call of each sample, until the entry raises."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # samples are small: more threads would only wait for each other
    try:
        with quiet_random_numbers(FIRST_SEED), suppress(Exception):
            for number, sample in enumerate(_open_samples(entry, dtype)):
                with quiet_random_numbers():  # what the call draws is no part of the next sample
                    visit(number, _as_call(entry, sample))
    finally:
        torch.set_num_threads(threads)


def _open_samples(entry: Any, dtype: torch.dtype) -> Iterator[Any]:
    """Return the samples by our random numbers: `entry.sample_inputs` sets the same seed before each sample."""
    return iter(entry.sample_inputs_func(entry, "cpu", dtype, False))


def _as_call(entry: Any, sample: Any) -> Callable[[], Any]:
    """Return a function that calls the entry's operation on a sample."""
    return lambda: entry.op(sample.input, *sample.args, **sample.kwargs)


def draw_sample(key: EntryKey, dtype: torch.dtype, number: int, seed: int) -> Callable[[], Any]:
    """Return a call of sample `number` of the entry, with values by the seed. Raises LookupError without one."""
    entry = load_entries().get(key)
    if entry is None:
        raise LookupError(f"this torch has no entry {key.name} in its database")
    with quiet_random_numbers(seed):
        for sample in islice(_open_samples(entry, dtype), number, None):
            return _as_call(entry, sample)
    raise LookupError(f"there are no {number + 1} samples")


LIST_VERSION = 4  # of what is kept on disk
# Of an operation: max_pool2d alone has 1,440 samples, of all combinations of its options.
MAX_TESTS = 100
TIMED_ELEMENTS = 10_000
DEFAULT_DTYPE = "float32"


@dataclass
class OpInfo:
    """The suite. `max_tests`: tests of an operation, taken evenly from all of its samples.

    Calls whose result cannot be checked are left out: random results, unwritten memory, results that are no
    tensors of plain numbers. The list is kept on disk for each version of torch.
    """

    name: str = "opinfo"
    max_tests: int = MAX_TESTS
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Return the tests, operation by operation.

        Raises UsageError for an operation or a dtype that it lacks, MachineError where torch's database cannot be
        loaded.
        """
        dtype = selection.dtype or DEFAULT_DTYPE
        check_dtype(dtype, SHORT_DTYPES, self.name)
        tests = self._list(dtype)
        check_names(selection.operations, (test.operation for test in tests), self.name)
        return (test for test in tests if matches(selection.operations, test.operation))

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Return the arguments of a test of this suite, drawn by the seed.

        Where shapes or numbers among the arguments are random themselves (some 80 tests), they are those of the list
        for every seed. Raises Skip where they cannot be drawn.
        """
        with suppress(Skip):
            return self._draw(test, seed)
        return self._draw(test, FIRST_SEED)  # as it was listed

    def _draw(self, test: EvaluationTest, seed: int) -> Arguments:
        """Draw the arguments by the seed. Raises Skip where they differ from those of the test."""
        source: Any = test.source if isinstance(test.source, dict) else {}
        key = EntryKey(str(source.get("entry")), str(source.get("variant")))
        try:
            call = draw_sample(key, getattr(torch, test.dtype), int(source.get("sample", 0)), seed)
            with quiet_random_numbers():
                args, kwargs = capture_arguments(call)
            text = format_call(describe_call(args, kwargs))
        except (LookupError, NotationError, ImportError) as error:
            raise Skip(str(error)) from None
        if text != test.arguments:
            raise Skip(Fact.of("other-draw", said=text))
        return Arguments(args, dict(kwargs))

    def _list(self, dtype: str) -> list[EvaluationTest]:
        """Return all tests of the dtype, from the cache on disk where they are kept."""
        parts = ["opinfo", str(LIST_VERSION), torch.__version__, dtype, str(self.max_tests)]
        name = disk_cache.cache_key(*parts, *([self.device] if self.device != "cpu" else []))
        if (kept := disk_cache.read_cached(name)) is not None:
            return [EvaluationTest(**each) for each in json.loads(kept)]
        tests = self._enumerate(dtype)
        disk_cache.write_cached(name, json.dumps([asdict(test) for test in tests]).encode())
        return tests

    def _enumerate(self, dtype: str) -> list[EvaluationTest]:
        """List the tests by trying each sample. Raises MachineError where the database cannot be loaded."""
        by_operation: dict[str, list[tuple[EvaluationTest, int]]] = {}
        try:
            entries = load_entries()
        except ImportError as error:
            raise MachineError(
                f"torch's own database of operations cannot be loaded: {error}",
                f"pip install {shlex.quote(error.name)}"
                if error.name and not error.name.startswith("torch")
                else None,
            ) from error
        for key, entry in entries.items():
            if not _is_wanted(entry, getattr(torch, dtype), self.device):
                continue

            def visit(number: int, call: Callable[[], Any], key: EntryKey = key) -> None:
                test = self._make_test(key, dtype, number, call)
                if test is not None:
                    by_operation.setdefault(test[0].operation, []).append(test)

            list_samples(entry, getattr(torch, dtype), visit)
        return [test for tests in by_operation.values() for test in self._choose(tests)]

    def _make_test(
        self, key: EntryKey, dtype: str, number: int, call: Callable[[], Any]
    ) -> tuple[EvaluationTest, int] | None:
        """Return the test of a sample and its elements; None where it is not one call that can be judged."""
        try:
            only = find_only_call(call)
            if only is None or only[0].namespace != "aten":
                return None
            check_decidable(only[0], self.device)
        except Exception:  # a sample that torch refuses is no test of anybody's kernel
            return None
        operation = str(only[0]).removeprefix("aten.")
        source: Json = {"entry": key.name, "variant": key.variant, "sample": number}
        test = make_test(self.name, operation, dtype, format_call(only[1]), source, timed=False)
        return test, sum(form.elements for form in only[1].tensors())

    def _choose(self, tests: list[tuple[EvaluationTest, int]]) -> Iterator[EvaluationTest]:
        """Yield some of an operation's tests, evenly, and with them the largest, which is timed if it is large."""
        largest, elements = max(tests, key=lambda test: test[1])
        last = len(tests) - 1
        numbers: Iterable[int] = range(len(tests))
        if len(tests) > self.max_tests:
            spread = {round(at * last / (self.max_tests - 2)) for at in range(self.max_tests - 1)}
            numbers = [at for at in numbers if at in spread or tests[at][0] is largest]
        for at in numbers:
            test = tests[at][0]
            yield replace(test, timed=True) if test is largest and elements >= TIMED_ELEMENTS else test


def _is_wanted(entry: Any, dtype: torch.dtype, device: str) -> bool:
    """Return whether the entry has samples of the dtype, and does not decompose matrices.

    Such results are not unique: eigenvectors may have another sign.
    """
    plain = "." not in entry.name or "nn.functional" in entry.name
    return plain and all(dtype in entry.supported_dtypes(each) for each in {"cpu", device})
