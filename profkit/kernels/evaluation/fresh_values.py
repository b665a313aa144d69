"""New values for the arguments of a call, so that results computed for other values are of no help.

Each number is made smaller by a random share of it, so that it stays in its domain, and keeps its sign. What
is sorted stays sorted: all of its numbers get the same share. Arguments that are all integers are only
permuted. Where the result does not change with that (a sign, a sum of integers), `strong` values change more:
the places of floating-point numbers, and which integers there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

import torch

from profkit.kernels.evaluation.worker.arguments import Encoder, Recipe, Tensor, decode
from profkit.kernels.operations.in_float64 import flat_tensors

NOISE = 1 / 8  # the largest share
POOL = 1 << 21  # random numbers at most, of which each tensor takes some from a random place
MIN_POOL = 1 << 16  # of them: two places are seldom the same
# To change a result: a tensor of n numbers has n - 1 other orders by rolling, and may get one of them twice.
TRIES = 4
RENEWED = 256  # of them, each time: nobody learns the pool


class Shares:
    """A pool of at most `count` random factors."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.random = random.SystemRandom()
        self.generator = torch.Generator(device).manual_seed(self.random.getrandbits(63))
        pool = torch.empty(min(POOL, count), device=device)
        self.pool = pool.uniform_(1 - NOISE, 1, generator=self.generator)


@cache
def shares_of_checks(device: torch.device) -> Shares:
    """Return one pool for the second calls of all tests.

    To learn it gains nothing: timed calls have pools of their own.
    """
    return Shares(MIN_POOL, device)


def device_of(tensors: Sequence[Tensor]) -> torch.device:
    """Return the device of the first tensor; the CPU if there is none."""
    return tensors[0].device if tensors else torch.device("cpu")


class FreshValues:
    """A writer of new values for the arguments of a call, of the same shapes and domains.

    `shares` are used where they suffice for the largest argument; otherwise it draws its own.
    """

    def __init__(
        self, encoder: Encoder, recipe: Recipe, *, strong: bool = False, shares: Shares | None = None
    ) -> None:
        self._contents, self._strong = encoder.contents, strong
        largest = max((content.numel() for content in encoder.contents), default=0)
        if shares is None or len(shares.pool) < 4 * largest:
            shares = Shares(max(4 * largest, MIN_POOL), device_of(encoder.contents))
        self._random, self._generator, self._pool = shares.random, shares.generator, shares.pool
        self._dtypes: dict[int, torch.dtype] = {}
        self._sorted: set[int] = set()
        for place, tensor in _first_tensors(encoder, recipe):
            self._dtypes[place] = tensor.dtype
            if _is_sorted(tensor):
                self._sorted.add(place)
        self._whole = not any(map(_is_inexact, self._dtypes.values()))

    def write(self, storages: Sequence[Tensor]) -> None:
        """Write new values of each storage."""
        self._renew()
        for number, (content, target) in enumerate(zip(self._contents, storages, strict=True)):
            dtype = self._dtypes.get(number)
            if dtype is None:
                target.copy_(content)
                continue
            count = content.numel() // dtype.itemsize * dtype.itemsize
            target[count:].copy_(content[count:])
            source, place = content[:count].view(dtype), target[:count].view(dtype)
            is_sorted = number in self._sorted
            if _is_inexact(dtype):
                if self._strong and not is_sorted:
                    source = self._roll(source)
                if is_sorted:
                    torch.mul(source, 1 - NOISE * self._random.random(), out=place)
                else:
                    self._scale(source, place)
            elif self._whole and (self._strong or not is_sorted):
                place.copy_(self._roll(source))
                if self._strong:
                    self._replace_some(place)
            else:
                place.copy_(source)

    def _renew(self) -> None:
        """Draw some factors of the pool anew."""
        begin = self._random.randrange(len(self._pool) - RENEWED)
        self._pool[begin : begin + RENEWED].uniform_(1 - NOISE, 1, generator=self._generator)

    def write_rows(self, region: Tensor, recipe: Recipe) -> None:
        """Write new values of each call in a region of consecutive slots, all at once where possible."""
        count = region.numel() // recipe.slot_bytes
        largest = max(
            (self._contents[number].numel() // each.itemsize for number, each in self._dtypes.items()),
            default=0,
        )
        if self._strong or self._whole or 2 * largest > len(self._pool):
            for begin in range(0, region.numel(), recipe.slot_bytes):
                places = zip(recipe.storages, recipe.sizes, strict=True)
                self.write([region[begin + at : begin + at + size] for at, size in places])
            return
        self._renew()
        for number, content in enumerate(self._contents):
            rows = region.as_strided(
                (count, content.numel()), (recipe.slot_bytes, 1), recipe.storages[number]
            )
            dtype = self._dtypes.get(number)
            if dtype is None or not _is_inexact(dtype):
                rows.copy_(content.expand(count, -1))
                continue
            numbers = content.numel() // dtype.itemsize
            whole = numbers * dtype.itemsize
            rows[:, whole:].copy_(content[whole:].expand(count, -1))
            places = region.view(dtype).as_strided(
                (count, numbers),
                (recipe.slot_bytes // dtype.itemsize, 1),
                recipe.storages[number] // dtype.itemsize,
            )
            torch.mul(content[:whole].view(dtype), self._factors(count, numbers, number), out=places)

    def _factors(self, count: int, numbers: int, number: int) -> Tensor:
        """Return the factors of `numbers` values in `count` rows; sorted values have one factor in a row."""
        width = 1 if number in self._sorted else numbers
        step = (len(self._pool) - width) // count
        begin = self._random.randrange(len(self._pool) - width - step * (count - 1))
        factors = self._pool.as_strided((count, width), (step, 1), begin)
        return factors.to(_real(self._dtypes[number]))

    def _roll(self, source: Tensor) -> Tensor:
        """Return the values moved by a random number of places."""
        return source.roll(self._random.randrange(1, max(2, source.numel())))

    def _scale(self, source: Tensor, target: Tensor) -> None:
        """Write the values times random factors."""
        step = len(self._pool) // 2
        for first in range(0, source.numel(), step):
            part = slice(first, min(source.numel(), first + step))
            count = part.stop - part.start
            begin = self._random.randrange(len(self._pool) - count)
            factors = self._pool[begin : begin + count]
            torch.mul(source[part], factors.to(_real(source.dtype)), out=target[part])

    def _replace_some(self, values: Tensor) -> None:
        """Replace some values by others of the same tensor."""
        count = values.numel()
        length = self._random.randrange(1, count // 4 + 2)
        begin, source = (self._random.randrange(max(1, count - length + 1)) for _ in range(2))
        values[begin : begin + length] = values[source : source + length].clone()


def choose_values(
    encoder: Encoder, recipe: Recipe, run: Callable[[Sequence[Tensor]], Sequence[Tensor]]
) -> FreshValues | None:
    """Return values with which most results change; None where none does, and could be kept from before.

    `run` gives PyTorch's own results for the bytes of the arguments' storages.
    """
    best, max_changed = None, 0
    for strong in (False, True):
        values = FreshValues(encoder, recipe, strong=strong)
        with suppress(Exception):  # PyTorch's own, for values that it does not take
            first = run(_written(values, encoder))
            for _ in range(TRIES):
                changed = sum(map(_differs, first, run(_written(values, encoder))))
                if changed > max_changed:
                    best, max_changed = values, changed
                if max_changed == len(first):
                    return best
    return best


def _differs(first: Tensor, second: Tensor) -> bool:
    """Return whether two results differ, with NaN taken as 0."""
    return first.shape != second.shape or not torch.equal(first.nan_to_num(), second.nan_to_num())


def _written(values: FreshValues, encoder: Encoder) -> list[Tensor]:
    """Return storages with new values."""
    storages = [torch.empty_like(content) for content in encoder.contents]
    values.write(storages)
    return storages


def _is_inexact(dtype: torch.dtype) -> bool:
    """Return whether the dtype is of floating-point or complex numbers."""
    return bool(dtype.is_floating_point or dtype.is_complex)


def _is_sorted(tensor: Tensor) -> bool:
    """Return whether numbers rise or fall along every row of four or more, and are not all equal."""
    if tensor.dim() == 0 or tensor.shape[-1] < 4 or tensor.is_complex() or tensor.dtype is torch.bool:
        return False
    for rows in (tensor[(0,) * (tensor.dim() - 1)], tensor):  # the first row alone decides most of them
        before, after = rows[..., :-1], rows[..., 1:]
        if not bool((before <= after).all()) and not bool((before >= after).all()):
            return False
    return not torch.equal(before, after)


def _real(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a complex number's parts; another dtype as it is."""
    return dtype.to_real() if dtype.is_complex else dtype


def _first_tensors(encoder: Encoder, recipe: Recipe) -> list[tuple[int, Tensor]]:
    """Return the first tensor in each storage that has one, with the number of the storage."""
    args, kwargs = decode(recipe.body, encoder.contents)
    by_address = {
        content.untyped_storage().data_ptr(): place for place, content in enumerate(encoder.contents)
    }
    known: dict[int, Tensor] = {}
    for tensor in flat_tensors([args, kwargs]):
        if tensor.numel():
            known.setdefault(by_address[tensor.untyped_storage().data_ptr()], tensor)
    return list(known.items())
