"""Convert the model's frozen types to plain JSON data and back, guided by their own type hints.

JSON has no NaN and no infinity: such a number is written as null. Data that does not fit the types is refused
with its place in the document; unknown fields are ignored, and absent ones take their default.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import DOCUMENT_BYTES, read_bounded
from profkit.core.types import Json

LARGEST_VALUE = 1e150  # in any unit: what is measured is less, and this can still be squared
_WHOLE = 1 << 64  # Python's own numbers have no end, and one of 400 digits is none that can be computed with
_T = TypeVar("_T")
_Decoder: TypeAlias = Callable[[Any, str], Any]  # data, and its place in the document


def to_plain_data(value: object) -> Json:
    """Convert a value of the model to plain JSON data; NaN and infinity become null.

    Raises TypeError for a value of any other type.
    """
    kind: Any = type(value)
    if value is None or kind is bool or kind is int:
        return cast("Json", value)
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(kind):
        return {name: to_plain_data(getattr(value, name)) for name in kind.__dataclass_fields__}
    if isinstance(value, (tuple, list)):
        return list(value) if _all_numbers(value) else [to_plain_data(item) for item in value]
    if isinstance(value, Mapping):
        return {valid_text(str(key)): to_plain_data(item) for key, item in value.items()}
    if isinstance(value, int):
        return value
    raise TypeError(f"a document holds plain data, not {kind.__name__}")


def map_text(value: _T, change: Callable[[str], str]) -> _T:
    """Return the value with `change` applied to each text in it.

    Also to those inside dataclasses, tuples, lists and mappings.
    """
    return cast("_T", _map_text(value, change))


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **{name: _map_text(part, change) for name, part in inside.items()})
    if isinstance(value, (tuple, list)):
        return type(value)(_map_text(part, change) for part in value)
    if isinstance(value, Mapping):
        return {_map_text(key, change): _map_text(part, change) for key, part in value.items()}
    return value


def is_finite_number(value: object) -> TypeGuard[float]:
    """Return whether a value from outside is a number that is safe to compute with.

    Its square is finite as a float, too. `math.isfinite` fails on a whole number of 400 digits.
    """
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -LARGEST_VALUE <= value <= LARGEST_VALUE
    )


def json_text(document: Mapping[str, object]) -> str:
    """Encode a document as JSON text with one line for each field, and one for each item of a field.

    That is short and quick to write: `json`'s own indentation, one line for each number, makes it ten times
    slower.
    """
    return join_fields(field_text(name, value) for name, value in document.items())


def field_text(name: str, value: object) -> str:
    """Encode one field of `json_text`."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    if isinstance(value, dict) and value:
        items = [f"{encode(key)}: {encode(item)}" for key, item in value.items()]
        text = "{\n  " + ",\n  ".join(items) + "\n }"
    elif isinstance(value, list) and value:
        text = "[\n  " + ",\n  ".join(map(encode, value)) + "\n ]"
    else:
        text = encode(value)
    return f" {encode(name)}: {text}"


def join_fields(fields: Iterable[str]) -> str:
    """Return the document of these fields, which `field_text` made."""
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _all_numbers(values: Sequence[object]) -> bool:
    """Return whether the values are all finite floats: the fast path for samples, which are most of a document."""
    return set(map(type, values)) == {float} and all(map(math.isfinite, cast("Sequence[float]", values)))


def valid_text(text: str) -> str:
    """Replace lone surrogates in a text: Python's name for a file that is not UTF-8 has them, and JSON must not."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def from_plain_data(kind: type[_T], data: object, place: str = "") -> _T:
    """Build a value of the model's type `kind` from parsed JSON.

    Raises UnreadableReport with the place of the data that does not fit.
    """
    return cast("_T", _decoder(cast("Any", kind))(data, place))


@functools.cache
def _decoder(kind: Any) -> _Decoder:
    """Return the function that decodes data to `kind`: Literal, X | None, tuple, Mapping, dataclass or scalar.

    Cached, since inspecting a type costs more than decoding a value of it.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        words = " or ".join(arguments)
        return lambda data, place: (
            data if isinstance(data, str) and data in arguments else _refuse(place, data, words)
        )
    if origin in (typing.Union, types.UnionType):
        inner = [item for item in arguments if item is not type(None)]
        if len(inner) > 1:  # `Json`
            return lambda data, _: data
        present = _decoder(inner[0])
        return lambda data, place: None if data is None else present(data, place)
    if origin is tuple:
        return functools.partial(_decode_items, _decoder(arguments[0]), arguments[0] is float)
    if origin is not None and issubclass(origin, Mapping):
        return functools.partial(_decode_mapping, _decoder(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return functools.partial(_decode_fields, kind)
    return functools.partial(_decode_scalar, kind)


def _decode_items(decode: _Decoder, numbers: bool, data: Any, place: str) -> Any:
    if not isinstance(data, list):
        _refuse(place, data, "a list")
    if numbers and _all_numbers(data):
        return tuple(data)
    return tuple(decode(item, f"{place}[{i}]") for i, item in enumerate(data))


def _decode_mapping(decode: _Decoder, data: Any, place: str) -> Any:
    if not isinstance(data, dict):
        _refuse(place, data, "an object")
    return {key: decode(item, f"{place}.{short_repr(key)}") for key, item in data.items()}


_SCALARS: dict[Any, str] = {int: "a whole number of 64 bits", bool: "true or false", str: "a text"}


def _decode_scalar(kind: type[Any], data: Any, place: str) -> Any:
    if kind is float:
        if data is None:
            return math.nan  # as it was before it was written: a number that is none
        return float(data) if is_finite_number(data) else _refuse(place, data, "a finite number")
    if kind not in _SCALARS:
        return data
    whole = kind is int and not isinstance(data, bool) and isinstance(data, int) and -_WHOLE <= data < _WHOLE
    fits = whole if kind is int else isinstance(data, kind)
    return data if fits else _refuse(place, data, _SCALARS[kind])


def _decode_fields(kind: Any, data: Any, place: str) -> Any:
    if not isinstance(data, dict):
        _refuse(place, data, "an object")
    values: dict[str, Any] = {}
    for name, decode, needed in _fields(kind):
        if name in data:
            values[name] = decode(data[name], f"{place}.{name}" if place else name)
        elif needed:
            raise UnreadableReport(f"{place + '.' if place else ''}{name} is missing")
    try:
        return kind(**values)
    except ValueError as error:  # what a type of the model refuses by itself
        raise UnreadableReport(f"{place}: {error}") from error


@functools.cache
def _fields(kind: Any) -> list[tuple[str, _Decoder, bool]]:
    """List each field's name, its decoder, and whether it must be given."""
    hints, absent = typing.get_type_hints(kind), dataclasses.MISSING
    return [
        (field.name, _decoder(hints[field.name]), field.default is absent and field.default_factory is absent)
        for field in dataclasses.fields(kind)
    ]


def _refuse(place: str, data: object, wanted: str) -> typing.NoReturn:
    raise UnreadableReport(f"{place or 'the document'} is {short_repr(data)}, not {wanted}")


# ---------------------------------------------------------------- documents in files


def read_document(file: Path, decode: Callable[[Any], _T], most: int = DOCUMENT_BYTES) -> _T:
    """Read a JSON file and return what `decode` makes of its content.

    Raises UnreadableReport that names the file where it is larger than `most` bytes, is not JSON, or `decode`
    refuses it.
    """
    fix = None
    try:
        return decode(json.loads(read_bounded(file, most).decode("utf-8-sig")))
    except UnreadableReport as error:
        why, fix = error.message, error.fix
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        why = f"not whole JSON ({error})"
    raise UnreadableReport(f"cannot read {file}: {why}", fix)


def check_schema(data: object, schema: str, what: str, again: str | None = None) -> dict[str, Any]:
    """Return the document if it declares this schema; raise UnreadableReport if it does not.

    `what` names in the message the kind of document that was expected; `again` is the command that writes a new
    one in place of one of an older version.
    """
    if not isinstance(data, dict):
        raise UnreadableReport(f"not {what}: the top is not an object")
    name, _, own = schema.rpartition("/")
    match = re.fullmatch(rf"{re.escape(name)}/(\d{{1,6}})", str(written := data.get("schema")))
    if match is None:
        raise UnreadableReport(f'not {what}: schema is {short_repr(written)}, not "{schema}"')
    if (newer := int(match[1]) - int(own)) != 0:
        age, fix = ("a newer", "upgrade profkit") if newer > 0 else ("an older", again)
        raise UnreadableReport(f"written by {age} profkit ({written}; this one reads {schema})", fix)
    return data


def short_repr(value: object) -> str:
    """Format a value from outside in at most 40 characters, for an error message."""
    text = (
        repr(value) if isinstance(value, (str, int, float, bool)) or value is None else type(value).__name__
    )
    return text if len(text) <= 40 else text[:37] + "..."


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch garbage collection off during the block, for code that makes many objects without cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
