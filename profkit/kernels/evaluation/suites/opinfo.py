"""The suite `opinfo`: of torch's database of operations, the samples that become one call of one overload of aten."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from profkit.core.errors import MachineError
from profkit.core.types import EvaluationTest
from profkit.core.types.readings import Json
from profkit.kernels import disk_cache
from profkit.kernels.evaluation.suites.capture import capture_arguments, describe_call, find_only_call
from profkit.kernels.evaluation.suites.identity import make_test
from profkit.kernels.evaluation.suites.names import check_dtype, check_names, matches
from profkit.kernels.evaluation.suites.notation import SHORT_DTYPES, NotationError, format_call
from profkit.kernels.evaluation.suites.op_database import (
    FIRST_SEED,
    EntryKey,
    SampleMaker,
    list_samples,
    load_entries,
)
from profkit.kernels.evaluation.suites.suite import Arguments, Selection, Skip
from profkit.kernels.evaluation.suites.values import check_decidable

LIST_VERSION = 2  # of what is kept on disk
MOST = 100  # tests of an operation: max_pool2d alone has 1,440 samples, of all combinations of its options
TIMED_ELEMENTS = 10_000
DEFAULT_DTYPE = "float32"


@dataclass
class OpInfo:
    """Its tests and their arguments. `most`: tests of an operation, taken evenly from all of its samples.

    What has no truth to be held against is left out: random results, unwritten memory, results that are no tensors of
    plain numbers. The list is kept on disk for each version of torch.
    """

    name: str = "opinfo"
    most: int = MOST
    device: str = "cpu"
    _maker: SampleMaker = field(default_factory=SampleMaker, repr=False)

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Its tests, operation by operation.

        Raises UsageError for an operation or a dtype that it has not, MachineError where torch's database cannot be
        loaded.
        """
        dtype = selection.dtype or DEFAULT_DTYPE
        check_dtype(dtype, SHORT_DTYPES, self.name)
        tests = self._list(dtype)
        check_names(selection.operations, (test.operation for test in tests), self.name)
        return (test for test in tests if matches(selection.operations, test.operation))

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """The arguments of a test of this suite, drawn by the seed. Those of one entry are cheapest in their order.

        Where shapes or numbers among the arguments are random themselves (some 80 tests), they are those of the list
        for every seed. Raises Skip where they cannot be drawn.
        """
        source = test.source if isinstance(test.source, dict) else {}
        with suppress(Skip):
            return self._draw(test, source, seed, lazy=bool(source.get("lazy")))
        return self._draw(test, source, FIRST_SEED, lazy=True)  # as it was listed

    def _draw(self, test: EvaluationTest, source: Mapping[str, Any], seed: int, *, lazy: bool) -> Arguments:
        key = EntryKey(str(source.get("entry")), str(source.get("variant")))
        try:
            call = self._maker.draw(
                key, getattr(torch, test.dtype), int(source.get("sample", 0)), seed, lazy=lazy
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                args, kwargs = capture_arguments(call)
            text = format_call(describe_call(args, kwargs))
        except (LookupError, NotationError, ImportError) as error:
            raise Skip(str(error)) from None
        if text != test.arguments:
            raise Skip(f"torch's database draws other arguments now: {text}")
        return Arguments(args, dict(kwargs))

    def _list(self, dtype: str) -> list[EvaluationTest]:
        parts = ["opinfo", str(LIST_VERSION), torch.__version__, dtype, str(self.most)]
        name = disk_cache.cache_key(*parts, *([self.device] if self.device != "cpu" else []))
        if (kept := disk_cache.read_cached(name)) is not None:
            return [EvaluationTest(**each) for each in json.loads(kept)]
        tests = self._enumerate(dtype)
        disk_cache.write_cached(name, json.dumps([asdict(test) for test in tests]).encode())
        return tests

    def _enumerate(self, dtype: str) -> list[EvaluationTest]:
        found: dict[str, list[tuple[EvaluationTest, int]]] = {}
        try:
            entries = load_entries()
        except ImportError as error:
            raise MachineError(
                f"torch's own database of operations cannot be loaded: {error}",
                f"pip install {error.name}" if error.name and not error.name.startswith("torch") else None,
            ) from error
        for key, entry in entries.items():
            if not _is_wanted(entry, getattr(torch, dtype), self.device):
                continue

            def visit(number: int, call: Callable[[], Any], lazy: bool, key: EntryKey = key) -> None:
                test = self._make_test(key, dtype, number, call, lazy)
                if test is not None:
                    found.setdefault(test[0].operation, []).append(test)

            list_samples(entry, getattr(torch, dtype), visit)
        return [test for tests in found.values() for test in self._choose(tests)]

    def _make_test(
        self, key: EntryKey, dtype: str, number: int, call: Callable[[], Any], lazy: bool
    ) -> tuple[EvaluationTest, int] | None:
        """The test of a sample and its elements; None where it is not one call that can be judged."""
        try:
            only = find_only_call(call)
            if only is None or only[0].namespace != "aten":
                return None
            check_decidable(only[0], self.device)
        except Exception:  # a sample that torch refuses is no test of anybody's kernel
            return None
        operation = str(only[0]).removeprefix("aten.")
        source: Json = {"entry": key.name, "variant": key.variant, "sample": number, "lazy": lazy}
        test = make_test(self.name, operation, dtype, format_call(only[1]), source, timed=False)
        return test, sum(form.elements for form in only[1].tensors())

    def _choose(self, tests: list[tuple[EvaluationTest, int]]) -> Iterator[EvaluationTest]:
        """Some of an operation's tests, evenly, and with them the largest; that one is timed if it is large."""
        largest, elements = max(tests, key=lambda test: test[1])
        last = len(tests) - 1
        numbers: Iterable[int] = range(len(tests))
        if len(tests) > self.most:
            spread = {round(at * last / (self.most - 2)) for at in range(self.most - 1)}
            numbers = [at for at in numbers if at in spread or tests[at][0] is largest]
        for at in numbers:
            test = tests[at][0]
            yield replace(test, timed=True) if test is largest and elements >= TIMED_ELEMENTS else test


def _is_wanted(entry: Any, dtype: torch.dtype, device: str) -> bool:
    """Whether it has samples of the dtype, and is no member of a library that decomposes matrices.

    Such results are not unique: eigenvectors may have another sign.
    """
    plain = "." not in entry.name or "nn.functional" in entry.name
    return plain and all(dtype in entry.supported_dtypes(each) for each in {"cpu", device})
