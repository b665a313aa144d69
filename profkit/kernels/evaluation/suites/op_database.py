"""torch's own database of operations and samples of their arguments (`torch.testing._internal`), loaded on request.

Samples are drawn with torch's global random numbers. Two ways lead to the values of sample n under a seed. Most entries
draw each sample when it is asked for: those before it are drawn with a fixed seed, and sample n with the given one. So
the next sample costs no more than itself. An entry that draws some of them at its start is drawn under the seed from
its start on.
"""

from __future__ import annotations

import random
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import torch

FIRST_SEED = 20250815  # of the samples before the one that is wanted, and of a list of them
_MODULE = "torch.testing._internal.common_methods_invocations"
_WIDE = 2**63 - 1


@dataclass(frozen=True)
class EntryKey:
    """An entry: several have one name and differ in their variant."""

    name: str
    variant: str


@cache
def load_entries() -> dict[EntryKey, Any]:
    """All entries by their keys, in torch's order. Raises ImportError where this torch was built without them.

    Importing them takes some seconds, and freezes torch's global flags: that is undone.
    """
    frozen = torch.backends.flags_frozen()
    stand_in = "expecttest" not in sys.modules and not _can_import("expecttest")
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


def _can_import(name: str) -> bool:
    with suppress(ImportError):
        __import__(name)
        return True
    return False


def _seed_all(seed: int) -> None:
    torch.default_generator.manual_seed(seed & _WIDE)  # torch.manual_seed seeds other devices, too: 2 ms
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Whoever else draws random numbers in this process sees none of ours."""
    numpy = sys.modules.get("numpy")
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])


def list_samples(
    entry: Any, dtype: torch.dtype, visit: Callable[[int, Callable[[], Any], bool], None]
) -> None:
    """Call `visit` with number, call and laziness of each sample, until the entry raises.

    Lazy is a sample that was drawn when it was asked for, or has no random values.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # samples are small: more threads would only wait for each other
    try:
        _visit_samples(entry, dtype, visit)
    finally:
        torch.set_num_threads(threads)


def _visit_samples(
    entry: Any, dtype: torch.dtype, visit: Callable[[int, Callable[[], Any], bool], None]
) -> None:
    with _own_random_numbers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(Exception):
            _seed_all(FIRST_SEED)
            start = torch.get_rng_state()
            samples = _open_samples(entry, dtype)
            constant = True  # nothing was drawn so far
            for number in count():
                if number > 0 or not (constant := torch.equal(start, torch.get_rng_state())):
                    _seed_all(FIRST_SEED)
                try:
                    sample = next(samples)
                except StopIteration:
                    return
                drawn = not torch.equal(start, torch.get_rng_state())
                constant = constant and not drawn
                visit(number, _as_call(entry, sample), drawn or constant)


def _open_samples(entry: Any, dtype: torch.dtype) -> Iterator[Any]:
    """What `entry.sample_inputs` gives, but by our random numbers: that one sets the same seed before each sample."""
    return iter(entry.sample_inputs_func(entry, "cpu", dtype, False))


def _as_call(entry: Any, sample: Any) -> Callable[[], Any]:
    return lambda: entry.op(sample.input, *sample.args, **sample.kwargs)


class SampleMaker:
    """Draws samples of one entry again and again; those of one entry in order cost each of them once."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._samples: Iterator[Any] = iter(())
        self._next = 0
        # of torch's random numbers, after the last sample that was drawn from the start on
        self._state: Any = None

    def draw(
        self, key: EntryKey, dtype: torch.dtype, number: int, seed: int, *, lazy: bool
    ) -> Callable[[], Any]:
        """A call of sample `number` of the entry, with values by the seed.

        `lazy`: this entry draws it when it is asked for. Raises LookupError where there is no such sample.
        """
        entry = load_entries().get(key)
        if entry is None:
            raise LookupError(f"this torch has no entry {key.name} in its database")
        with _own_random_numbers(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = (key, dtype, None if lazy else seed)
            try:
                if self._key != source or self._next > number:
                    _seed_all(FIRST_SEED if lazy else seed)
                    self._key, self._next = source, 0
                    self._samples = _open_samples(entry, dtype)
                elif not lazy:
                    torch.set_rng_state(self._state)
                while self._next < number:
                    self._draw_next(FIRST_SEED if lazy else None)
                sample = self._draw_next(seed if lazy else None)
                self._state = torch.get_rng_state()
            except BaseException:
                self._key = ()
                raise
        return _as_call(entry, sample)

    def _draw_next(self, seed: int | None) -> Any:
        if seed is not None:
            _seed_all(seed)
        self._next += 1
        for sample in self._samples:
            return sample
        raise LookupError(f"there are no {self._next} samples")
