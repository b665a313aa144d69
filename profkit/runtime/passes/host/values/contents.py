"""What the lists, tuples and records of a function hold, as far as it is arrays, lists or numbers of a library.

Looked at is the first element alone, and of a record only the fields that the function names. As in `values`, no code
of the program runs for it, and no content leaves the process.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any

# Behind how the source names a sequence: the type of its elements, and how many numbers the first of them has.
ELEMENTS = " [elements]"
# Behind a relation of an object of Django, as `order.items`: what the relation is, and that it was prefetched.
RELATION, PREFETCHED = " [relation]", " [prefetched]"
_DESCRIPTORS = "django.db.models.fields.related_descriptors"
_NUMPY, _TENSOR, _JAX, _NUMBER = "numpy.ndarray", "torch.Tensor", "jax.Array", "numpy.number"
_CODE = type((lambda: None).__code__)
_SEQUENCES = (list, tuple)
_MEMBER = type(type("", (), {"__slots__": ("a",)}).a)  # type: ignore[attr-defined]
_OTHERS = (*_SEQUENCES, str, bytes, bytearray, int, float, bool, set, frozenset, type(None), type, type(sys))
LONGEST_KEY, MOST_FIELDS = 40, 8  # signs of a key of a dict; fields of a record that are looked at


def named_in(code: CodeType) -> tuple[frozenset[str], frozenset[object]]:
    """Return the names of attributes, and the texts and numbers that may be keys, of a function and what is in it."""
    inner = [each for each in code.co_consts if type(each) is _CODE and each.co_name.startswith("<")]
    codes = (code, *inner)
    names = frozenset(name for each in codes for name in each.co_names)
    return names, frozenset(
        key for each in codes for key in each.co_consts if type(key) is str and len(key) <= LONGEST_KEY
    )


def sequences_of(
    name: str, value: object, names: frozenset[str], keys: frozenset[object]
) -> Iterator[tuple[str, str, int]]:
    """Yield the sequences of arrays and the like that a variable is, or that a field of it is.

    As `name`, `name.field`, `name['key']`, and of a list of records `name[].field`, `name[]['key']`, `name[][0]`: the
    type of an element, and how many numbers it has.
    """
    if type(value) in _SEQUENCES:
        first = _first_of(value)
        if (kind := element_kind(first)) is not None:
            yield name, *kind
        for path, field in _fields(f"{name}[]", first, names, keys):
            if (kind := element_kind(field)) is not None:
                yield path, *kind
        if type(first) is tuple:  # taken apart by the loop that goes through them
            for at, field in enumerate(first[:MOST_FIELDS]):
                if (kind := element_kind(field)) is not None:
                    yield f"{name}[][{at}]", *kind
        return
    for path, field in _fields(name, value, names, keys):
        if type(field) in _SEQUENCES and (kind := element_kind(_first_of(field))) is not None:
            yield path, *kind


def relations_of(name: str, value: object, names: frozenset[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the relations that a function names of an object of Django: what each is, and what is prefetched of it."""
    kind = type(value)
    if _of_type(type(kind), "__module__") != "django.db.models.base":
        return
    held = object.__getattribute__(value, "__dict__").get("_prefetched_objects_cache")
    for base in kind.__mro__:
        for relation in [each for each in names if each in vars(base)]:
            descriptor = type(vars(base)[relation])
            if descriptor.__module__ == _DESCRIPTORS:
                yield f"{name}.{relation}{RELATION}", descriptor.__name__, -1
                if type(held) is dict and relation in held:
                    yield f"{name}.{relation}{PREFETCHED}", "list", 1


def _first_of(value: Any) -> object:
    return value[0] if len(value) else None


def _fields(
    path: str, value: object, names: frozenset[str], keys: frozenset[object]
) -> Iterator[tuple[str, object]]:
    """Yield the fields of a record, or the values of a dict, that a function names."""
    kind = type(value)
    if kind is dict:
        for key in [key for key in keys if key in value][:MOST_FIELDS]:  # type: ignore[operator]
            yield f"{path}[{key!r}]", value[key]  # type: ignore[index]
        return
    if kind in _OTHERS or module_of(kind) in ("numpy", "torch", "jax", "jaxlib", "pandas"):
        return
    held = _held_by(value, kind)
    for field in [field for field in names if field in held][:MOST_FIELDS]:
        yield f"{path}.{field}", held[field]


def _held_by(value: Any, kind: type) -> dict[str, object]:
    """Return the fields of a named tuple, or the attributes of an object, without asking the object."""
    if issubclass(kind, tuple):
        named = next(
            (vars(base)["_fields"] for base in _of_type(kind, "__mro__") if "_fields" in vars(base)), ()
        )
        return dict(zip(named, tuple.__iter__(value), strict=False)) if type(named) is tuple else {}
    try:
        return object.__getattribute__(value, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        found: dict[str, object] = {}
        for name, member in list(vars(kind).items()):
            if type(member) is _MEMBER:
                try:
                    found[name] = member.__get__(value)
                except AttributeError:  # it has no value yet
                    continue
        return found


def element_kind(value: object) -> tuple[str, int] | None:
    """Return the type of an element that a conversion goes into, and how many numbers it has; None of others."""
    kind, module = type(value), module_of(type(value))
    if kind in _SEQUENCES:
        plain = bool(value) and type(_first_of(value)) in (int, float, bool)
        return ("list", len(value)) if plain else None  # type: ignore[arg-type]
    if module == "numpy":
        numpy: Any = sys.modules["numpy"]
        if kind is numpy.ndarray and value.dtype.kind in "biufc":  # type: ignore[attr-defined]
            return _NUMPY, value.size  # type: ignore[attr-defined]
        return (_NUMBER, 1) if issubclass(kind, (numpy.number, numpy.bool_)) else None
    if module == "torch" and kind is getattr(sys.modules.get("torch"), "Tensor", None):
        return _TENSOR, value.numel()  # type: ignore[attr-defined]
    if module == "jaxlib" and name_of(kind) == "ArrayImpl":
        return _JAX, value.size  # type: ignore[attr-defined]
    return None


_of_type = type.__getattribute__  # whatever a metaclass of the program does


def module_of(kind: type) -> str:
    """Return the first name of a type's module; empty where it is no text."""
    module = _of_type(kind, "__module__")
    return module.partition(".")[0] if type(module) is str else ""


def name_of(kind: type) -> str:
    """Return the name of a type."""
    name = _of_type(kind, "__name__")
    return name if type(name) is str else ""
