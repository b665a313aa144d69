"""What a row's expression found, made into values: a column at a time, with the work done by C wherever it can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Generic, TypeVar

from profkit.profilers.xctrace.cells import DECIMALS, INTEGERS, LISTS, Cell, scalar
from profkit.profilers.xctrace.definitions import KEPT, Definitions, Irregular
from profkit.profilers.xctrace.fast_stacks import TAGS, Stacks
from profkit.profilers.xctrace.row_pattern import Kind
from profkit.profilers.xctrace.table import Column
from profkit.profilers.xctrace.text import text_of
from profkit.profilers.xctrace.values import Value

V = TypeVar("V")
Found = Sequence[bytes]  # of one group, for each row

_WHOLE = re.compile(rb"(?:-?[0-9]{1,20},)*")
_DECIMAL = re.compile(rb"(?:-?[0-9]{1,20}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?,)*")


class Store(Generic[V]):
    """Values by id. What was not asked for since the last turn is forgotten, and found again in the file if need be."""

    def __init__(self, nothing: V, again: Callable[[Sequence[bytes]], Iterable[tuple[bytes, V]]]) -> None:
        self._nothing = nothing
        self._young: dict[bytes, V] = {b"": nothing}
        self._old: dict[bytes, V] = {}
        self._again = again

    def say(self, fresh: Iterable[tuple[bytes, V]]) -> None:
        """What some ids are."""
        if len(self._young) > KEPT:
            self._old, self._young = self._young, {b"": self._nothing}
        self._young.update(fresh)

    def values(self, keys: Sequence[bytes]) -> list[V]:
        """The value of each id; an empty one is a cell without a value."""
        young = self._young
        try:
            return list(map(young.__getitem__, keys))
        except KeyError:
            missing = set(keys) - young.keys()
        known = self._old.keys() & missing
        young.update([(key, self._old[key]) for key in known])
        young.update(self._again(list(missing - known)))
        return list(map(young.__getitem__, keys))


class Stores:
    """What is known of the cells of one tag; columns of one tag share it, since one may refer to the other."""

    def __init__(self, tag: str, definitions: Definitions, *, parts: bool) -> None:
        self.tag, self.definitions = tag, definitions
        self._stacks = Stacks(tag, definitions) if tag in TAGS and not parts else None
        self.numeric = tag in INTEGERS or tag in DECIMALS or tag in LISTS
        self.values: Store[Value] = Store(None, self._again(lambda cell: cell.value))
        self.shown: Store[str | None] = Store(None, self._again(lambda cell: cell.fmt))
        self.whole: Store[Cell | None] = Store(None, self._again(lambda cell: cell))

    def look(self, key: bytes) -> Cell:
        """The cell with that id."""
        return self.definitions.look(key.decode(), self.tag)

    def _again(self, take: Callable[[Cell], V]) -> Callable[[Sequence[bytes]], Iterable[tuple[bytes, V]]]:
        def again(keys: Sequence[bytes]) -> Iterable[tuple[bytes, V]]:
            if len(keys) > 1:
                self.definitions.prepare([key.decode() for key in keys], self.tag)
            for key in keys:
                yield key, take(self.look(key))

        return again

    def numbers(self, keys: Found, bodies: Found) -> Iterable[tuple[bytes, Value]]:
        """The cells among these that say a number, each with it."""
        said = [body for body in bodies if body]
        keyed = compress(keys, bodies)
        joined = b",".join(said) + b"," if said else b""
        if self.tag in INTEGERS and _WHOLE.fullmatch(joined):
            return zip(keyed, map(int, said))  # noqa: B905 (they are of one length)
        if self.tag in DECIMALS and _DECIMAL.fullmatch(joined):
            return zip(keyed, map(float, said))  # noqa: B905
        return [(key, self._number(key, body)) for key, body in zip(keyed, said, strict=True)]

    def _number(self, key: bytes, body: bytes) -> Value:
        return self.look(key).value if b"<" in body else scalar(self.tag, text_of(body), None)

    def texts(self, keys: Found, shown: Found, bodies: Found) -> Iterable[tuple[bytes, Value]]:
        """The cells among these that say a text, each with it; `bodies` begin with ">"."""
        for key, fmt, body in zip(keys, shown, bodies, strict=True):
            if not body:
                continue
            raw = fmt if b"<" in body else body[1:]
            if raw.isspace() or not raw:  # its text or what is shown for it: the careful way knows
                yield key, self.look(key).value
            else:
                yield key, text_of(raw)

    def cells(self, elements: Found, ids: Found) -> Iterable[tuple[bytes, Cell | None]]:
        """The cells among these that are said as elements."""
        said = [element for element in elements if element]
        cells: list[Cell | None] = []
        if self._stacks is not None:
            cells = self._stacks.cells(said)
        elif said:
            self.definitions.parse(b"".join(said), cells.append)
            if len(cells) != len(said):
                raise Irregular
        return zip(filter(None, ids), cells, strict=True)


class Wanted:
    """One wanted column: first `say` what its cells say, of all columns, then `take` their values."""

    def __init__(self, stores: Stores, kind: Kind, what: Sequence[str]) -> None:
        self._stores, self._kind, self._what = stores, kind, what

    def say(self, groups: Sequence[Found]) -> None:
        """Note what these cells say."""
        stores = self._stores
        if self._kind == "whole":
            stores.whole.say(stores.cells(groups[1], groups[2]))
        elif self._kind == "number":
            stores.values.say(stores.numbers(groups[0], groups[1]))
        else:
            keys, shown, bodies = groups
            if "@fmt" in self._what:
                stores.shown.say((k, text_of(f)) for k, f in zip(keys, shown, strict=True) if f)
            if stores.numeric:
                stores.values.say(stores.numbers(keys, [body[1:] for body in bodies]))
            else:
                stores.values.say(stores.texts(keys, shown, bodies))

    def take(self, groups: Sequence[Found]) -> dict[str, Sequence[object]]:
        """For each thing that is wanted of the column ("", "@fmt", "*") what it is in these rows."""
        stores = self._stores
        if self._kind != "whole":
            return {what: (stores.shown if what else stores.values).values(groups[0]) for what in self._what}
        keys = [reference or identity for reference, identity in zip(groups[0], groups[2], strict=True)]
        cells = stores.whole.values(keys)
        return {what: [part(cell, what) for cell in cells] for what in self._what}


def part(cell: Cell | None, what: str) -> object:
    """What is wanted of a cell: its value, what is shown for it, or what is in it."""
    if cell is None:
        return None
    if what == "":
        return cell.value
    return cell.fmt if what == "@fmt" else tuple([None if p is None else p.value for p in cell.parts])


def split_wanted(columns: Sequence[Column], wanted: Sequence[str]) -> list[tuple[int | None, str]]:
    """For each wanted name the place of its column (None: there is none), and what of it: "", "@fmt" or "*"."""
    places: Mapping[str, int] = {column.mnemonic: n for n, column in reversed(list(enumerate(columns)))}
    found = []
    for name in wanted:
        mnemonic, what = name, ""
        if name.endswith(("/@fmt", "/*")):
            mnemonic, _, what = name.rpartition("/")
        found.append((places.get(mnemonic), what))
    return found
