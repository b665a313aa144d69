"""Marks the part of a workload that counts.

    with profkit.region("mlp"):
        step()

    @profkit.region("mlp")
    def step(): ...

Costs two empty calls when nobody is profiling. Imports only what every interpreter has loaded already:
everything else is in `active`, which is loaded when the environment says that this process is being profiled.
"""

import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing for it costs 2 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any, Protocol, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

    class Region(AbstractContextManager[None], Protocol):
        """A context manager that decorates, too."""

        def __call__(self, function: "F") -> "F":
            """Mark every call of `function`."""


DIRECTIVE_VARIABLE = "PROFKIT_DIRECTIVE"
HOST_MODULE = "profkit_pass_host"  # the module that a Python pass leaves in sys.modules, with its switch


class _Unprofiled:
    """The region of a process that is not profiled: it does nothing, and all regions share it."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: "F") -> "F":
        return function


_unprofiled = _Unprofiled()


def region(name: str) -> "Region":
    """Mark what counts, as a context manager or a decorator; reports show `name`.

    May be nested and entered again, in any thread: instruments run from the outermost entry to its exit.
    Raises TypeError when `name` is not a string (a decorator without its name would swallow the function).
    """
    if name.__class__ is not str:
        raise TypeError('a region needs its name: @profkit.region("name")')
    return _unprofiled


if DIRECTIVE_VARIABLE in os.environ or HOST_MODULE in sys.modules:
    from profkit.runtime.passes.host.own_library import own_library

    with own_library:
        from profkit.runtime.region.active import region as region


class _CallableModule(type(sys)):  # type: ignore[misc]  # types.ModuleType, without importing types
    """`profkit.region` names this package as soon as anything imports it: then the package is called."""

    __call__ = staticmethod(region)


sys.modules[__name__].__class__ = _CallableModule
