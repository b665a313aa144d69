"""A class whose methods are made later is, once it is used, what the standard library makes of it at once."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

import profkit
from profkit.core import lazy_dataclass

_T = TypeVar("_T")


class _Point:
    x: int
    y: tuple[int, ...] = (2,)
    notes: dict[str, int] = dataclasses.field(default_factory=dict, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")


class _Named(Generic[_T]):
    name: _T

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)


_PLAIN = {"_Point": _Point, "_Named": _Named}


def _copy_of(name: str) -> Any:
    body = {k: copy.copy(v) for k, v in vars(_PLAIN[name]).items() if k not in ("__dict__", "__weakref__")}
    cls = type(name, (), body)
    cls.__qualname__ = name
    return cls


def _both(name: str, **options: bool) -> list[Any]:
    makers: tuple[Callable[..., Any], ...] = (dataclasses.dataclass, lazy_dataclass.dataclass)
    return [make(frozen=True, **options)(_copy_of(name)) for make in makers]


def _outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except Exception as failure:
        return type(failure), str(failure).replace("first_call", "__init__")


@pytest.mark.parametrize("options", [{}, {"eq": False}, {"kw_only": True}])
@pytest.mark.parametrize("name", _PLAIN)
def test_all_that_a_class_has_is_what_the_standard_library_gives_it(
    name: str, options: dict[str, bool]
) -> None:
    at_once, later = _both(name, **options)
    dataclasses.fields(later)
    assert vars(later).keys() == vars(at_once).keys()
    assert inspect.signature(later) == inspect.signature(at_once)
    assert later.__match_args__ == at_once.__match_args__
    assert repr(later.__dataclass_params__) == repr(at_once.__dataclass_params__)
    assert [repr(field) for field in dataclasses.fields(later)] == [
        repr(field) for field in dataclasses.fields(at_once)
    ]


@pytest.mark.parametrize(
    "act",
    [
        lambda cls: repr(cls(1)),
        lambda cls: cls(1, notes={"a": 1}) == cls(1),
        lambda cls: cls(1) == cls(2),
        lambda cls: hash(cls(1)) == hash(cls(1, notes={"a": 1})),
        lambda cls: cls(-1),
        lambda cls: cls(),
        lambda cls: cls(1, (2,), {}),
        lambda cls: setattr(cls(1), "x", 2),
        lambda cls: setattr(cls(1), "z", 2),
        lambda cls: delattr(cls(1), "x"),
        lambda cls: dataclasses.replace(cls(1), x=5).x,
        lambda cls: dataclasses.asdict(cls(1)),
        lambda cls: copy.deepcopy(cls(1)) == cls(1),
        lambda cls: [name for name in ("x", "y", "notes") if hasattr(cls, name)],
        lambda cls: dataclasses.is_dataclass(cls),
        lambda cls: object.__new__(cls) is None,
    ],
)
def test_what_is_done_with_a_class_first_has_the_same_outcome(act: Callable[[Any], object]) -> None:
    at_once, later = _both("_Point")
    assert _outcome(lambda: act(later)) == _outcome(lambda: act(at_once))


def test_a_class_may_follow_one_of_either_kind() -> None:
    at_once, later = _both("_Point")
    for base in (at_once, later):
        for make in (dataclasses.dataclass, lazy_dataclass.dataclass):
            body = {"z": 3, "__annotations__": {"z": "int"}, "__module__": __name__}
            cls: Any = make(frozen=True)(type("More", (base,), body))
            assert repr(cls(1)) == "More(x=1, y=(2,), notes={}, z=3)"
            assert cls(1) != base(1)


def test_a_class_that_is_not_frozen_is_refused() -> None:
    with pytest.raises(TypeError, match="frozen"):
        lazy_dataclass.dataclass(frozen=False)


def test_an_object_that_was_pickled_is_read_by_a_process_that_made_none() -> None:
    from profkit.core.types import Fact

    fact = Fact("code", {"a": 1})
    assert pickle.loads(pickle.dumps(fact)) == fact


def test_threads_that_use_a_class_first_at_the_same_time_have_the_same_class() -> None:
    """Without a twin one of them may call `object.__init__`."""
    for _ in range(40):
        _, later = _both("_Point")
        start, seen = threading.Barrier(4), []

        def use(cls: Any = later, start: threading.Barrier = start, seen: list[object] = seen) -> None:
            start.wait()
            seen.append(_outcome(lambda: (repr(cls(1)), cls(1) == cls(1), hash(cls(1)))))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [("_Point(x=1, y=(2,), notes={})", True, seen[0][2])] * 4  # type: ignore[index]


def test_every_class_of_profkit_can_be_made() -> None:
    """Else a wrong field would be found where the class is first used."""
    root = Path(profkit.__file__).parent
    using = [path for path in root.rglob("*.py") if "lazy_dataclass import" in path.read_text("utf-8")]
    made = 0
    for info in pkgutil.walk_packages([str(root)], "profkit."):
        path = root.joinpath(*info.name.split(".")[1:])
        if path.with_suffix(".py") in using or path / "__init__.py" in using:
            for cls in vars(importlib.import_module(info.name)).values():
                if isinstance(cls, type) and cls.__module__ == info.name and dataclasses.is_dataclass(cls):
                    inspect.signature(cls)
                    made += not hasattr(cls.__init__, "made_later")
    assert made > 100
