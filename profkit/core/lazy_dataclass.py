"""A frozen dataclass whose methods are made when one of them is first called.

`dataclasses.dataclass` writes and compiles five functions for each class: 0.5 ms, before Python 3.13. A command imports
three hundred such classes and makes objects of a few, and this was a third of the processor time of a `summarize`.
The standard library still makes the methods, only later; what a class looks like afterwards is the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # what it is to a type checker and to an editor
else:
    import dataclasses

    _Class = TypeVar("_Class", bound=type)

    _lock = (
        threading.RLock()
    )  # two threads may use a class first at the same time, and a class needs its bases
    # Of the classes whose methods are not made yet: the options, and what each field() in its body says.
    _waiting: dict[type, tuple[dict[str, bool], dict[str, dataclasses.Field[Any]]]] = {}

    def dataclass(*, frozen: bool, eq: bool = True, kw_only: bool = False) -> Callable[[_Class], _Class]:
        """Return a decorator for a class as `dataclasses.dataclass` makes it; one that is not frozen is refused."""
        if not frozen:
            raise TypeError("only frozen classes are made later")
        methods = ["__init__", "__repr__", *(["__eq__", "__hash__"] if eq else [])]

        def decorate(cls: _Class) -> _Class:
            for name in methods:
                if name not in cls.__dict__:
                    setattr(cls, name, _method(cls, name))
            for name in ("__dataclass_fields__", "__dataclass_params__", "__match_args__"):
                if name not in cls.__dict__:
                    setattr(cls, name, _Attribute(cls, name))
            cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
            said = {name: value for name, value in vars(cls).items() if isinstance(value, dataclasses.Field)}
            for name, field in said.items():
                if field.default is dataclasses.MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, field.default)
            _waiting[cls] = {"frozen": frozen, "eq": eq, "kw_only": kw_only}, said
            return cls

        return decorate

    class _Attribute:
        """An attribute of the class that the standard library sets beside the methods."""

        def __init__(self, cls: type, name: str) -> None:
            self.cls, self.name = cls, name

        def __get__(self, instance: object, owner: type) -> Any:
            _make(self.cls)
            return getattr(self.cls, self.name)

    def _method(cls: type, name: str) -> Callable[..., Any]:
        def first_call(self: object, *args: Any, **named: Any) -> Any:
            _make(cls)
            return getattr(cls, name)(self, *args, **named)

        first_call.made_later = True
        return first_call

    def _make(cls: type) -> None:
        """Let the standard library make all of `cls`.

        It adds no method where one is, and without its methods `cls` would be another class for a moment, which other
        threads may use. So a twin gets them, as with `slots=True`, and each replaces its stand-in at once.
        """
        with _lock:
            if cls not in _waiting:
                return
            options, said = _waiting[cls]
            body = {name: value for name, value in vars(cls).items() if not _is_added(name, value)} | said
            twin = type(cls)(cls.__name__, cls.__bases__, dict(body))
            twin.__qualname__ = cls.__qualname__
            dataclasses.dataclass(**options)(twin)
            for name, value in vars(twin).items():
                if name not in _NOT_COPIED and (name not in body or body[name] is not value):
                    setattr(cls, name, value)
            del _waiting[cls]

    _NOT_COPIED = frozenset(("__setattr__", "__delattr__", "__dict__", "__weakref__"))

    def _is_added(name: str, value: object) -> bool:
        return name in _NOT_COPIED or isinstance(value, _Attribute) or hasattr(value, "made_later")

    def _refuse_to_set(_self: object, name: str, _value: object) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(_self: object, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
