"""Reads the part of Python's marshal format that pstats files use, and refuses the rest.

Not `marshal.load`: it is documented as unsafe for files of others, and a crafted one takes the interpreter
down or all memory. Here every length is held against the bytes that are left, nesting is bounded, and there
is no code. Format: Python/marshal.c of CPython 3.4 to 3.14 (versions 3 to 5; these types are the same in all
of them).
"""

from __future__ import annotations

import struct

MOST_DEPTH = 16  # a pstats file nests 5 deep
_FLAG_REF = 0x80
_Missing = object()


class NotPlainData(ValueError):
    """The bytes are no marshal data, or hold more than numbers, text, tuples and dicts."""


def loads(data: bytes) -> object:
    """The one value that `data` holds: None, bool, int, float, str, bytes, tuple, list and dict.

    Keys of dicts are plain values or tuples of plain values. Raises NotPlainData for anything else, also
    where the data ends early or goes on after the value.
    """
    reader = _Reader(data)
    try:
        value = reader.value(MOST_DEPTH)
    except (struct.error, IndexError):
        raise NotPlainData("the data ends within a value") from None
    if reader.at != len(data):
        raise NotPlainData("there is more after the end of the value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._refs: list[object] = []

    def value(self, depth: int) -> object:
        found = self._next(depth)
        if found is _Missing:
            raise NotPlainData("a value is missing")
        return found

    def _next(self, depth: int) -> object:
        """The next value, or _Missing for the mark that ends a dict."""
        if depth == 0:
            raise NotPlainData(f"nested more than {MOST_DEPTH} deep")
        code = self._data[self.at]
        self.at += 1
        kind = code & ~_FLAG_REF
        if (
            kind in b"([<{)"
        ):  # may hold a reference to itself, so it gets its number before its parts are read
            return self._container(kind, depth, code & _FLAG_REF)
        found = self._scalar(kind)
        if code & _FLAG_REF and kind != ord("r"):
            self._refs.append(found)
        return found

    def _container(self, kind: int, depth: int, numbered: int) -> object:
        place = len(self._refs)
        if numbered:
            self._refs.append(_Missing)
        found: object
        if kind == ord("{"):
            found = self._dict(depth - 1)
        else:
            count = self._byte() if kind == ord(")") else self._length()
            items = [self.value(depth - 1) for _ in range(self._at_most(count))]
            if kind == ord("<"):
                raise NotPlainData("it holds a set")
            found = items if kind == ord("[") else tuple(items)
        if numbered:
            self._refs[place] = found
        return found

    def _dict(self, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        while (key := self._next(depth)) is not _Missing:
            # Nothing deeper than this is hashed: tuples that refer to tuples could take for ever.
            for part in key if isinstance(key, tuple) else (key,):
                if isinstance(part, tuple | list | dict):
                    raise NotPlainData("a key is no plain value")
            found[key] = self.value(depth)
        return found

    def _scalar(self, kind: int) -> object:
        match chr(kind):
            case "i":
                return self._unpack("<i", 4)
            case "g":
                return self._unpack("<d", 8)
            case "r":
                index = self._unpack("<I", 4)
                assert isinstance(index, int)
                if index >= len(self._refs) or self._refs[index] is _Missing:
                    raise NotPlainData("a reference leads nowhere")
                return self._refs[index]
            case "z" | "Z":
                return self._take(self._byte()).decode("latin-1")
            case "a" | "A":
                return self._take(self._length()).decode("latin-1")
            case "u" | "t":
                return self._take(self._length()).decode("utf-8", "replace")
            case "s":
                return self._take(self._length())
            case "0":
                return _Missing
            case "N":
                return None
            case "T" | "F":
                return kind == ord("T")
            case "I":
                return self._unpack("<q", 8)
            case "f":
                return self._text_float()
            case "l":
                return self._long()
        raise NotPlainData(f"it holds a value of type {chr(kind)!r}")

    def _text_float(self) -> float:
        text = self._take(self._byte())
        try:
            return float(text)
        except ValueError:
            raise NotPlainData("a number is no number") from None

    def _long(self) -> int:
        """Digits of 15 bits, the sign in their count. Numbers of a profile fit into 64 bits."""
        digits = self._unpack("<i", 4)
        assert isinstance(digits, int)
        if abs(digits) > 8:
            raise NotPlainData("a number has too many digits")
        number = 0
        for place in range(abs(digits)):
            digit = self._unpack("<H", 2)
            assert isinstance(digit, int)
            number |= digit << (15 * place)
        return -number if digits < 0 else number

    def _unpack(self, form: str, size: int) -> object:
        (found,) = struct.unpack_from(form, self._data, self.at)
        self.at += size
        return found

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _length(self) -> int:
        found = self._unpack("<i", 4)
        assert isinstance(found, int)
        return found

    def _at_most(self, count: int) -> int:
        """`count`, if that much can still be there: every value takes a byte at least."""
        if not 0 <= count <= len(self._data) - self.at:
            raise NotPlainData("the data ends within a value")
        return count

    def _take(self, count: int) -> bytes:
        self.at += self._at_most(count)
        return self._data[self.at - count : self.at]
