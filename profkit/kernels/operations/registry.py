"""The implementations of each operation. A user's file adds its own with `implementation`."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TypeAlias, TypeVar

from profkit.core.errors import UsageError
from profkit.core.files.regular import DOCUMENT_BYTES, check_regular
from profkit.core.types import Fact
from profkit.kernels.operations.definitions import (
    Call,
    CrossEntropy,
    Gelu,
    LayerNorm,
    Mse,
    Operation,
    Problem,
    Swish,
)
from profkit.kernels.operations.definitions import Unavailable as Unavailable

OPERATIONS: dict[str, Operation] = {
    op.name: op for op in (LayerNorm(), Gelu(), Swish(), Mse(), CrossEntropy())
}
GROUPS = {"Loss": ("MSE", "CrossEntropy")}  # the guide's word for both

Builder: TypeAlias = Callable[[Problem], Call]
_B = TypeVar("_B", bound=Builder)


def _build_eager(problem: Problem) -> Call:
    """Build PyTorch's own call."""
    from profkit.kernels.operations.pytorch import build_eager

    return build_eager(problem)


def _build_compiled(problem: Problem) -> Call:
    """Build the call that torch.compile makes."""
    from profkit.kernels.operations.pytorch import build_compiled

    return build_compiled(problem)


def _build_triton(problem: Problem) -> Call:
    """Build the call of a kernel in Triton."""
    from profkit.kernels.operations.triton import build

    return build(problem)


def _build_cuda(problem: Problem) -> Call:
    """Build the call of a kernel in CUDA C++."""
    from profkit.kernels.operations.cuda.launch import build

    return build(problem)


# profkit's own builders, in the order in which they are shown. Each imports its module when it is called: a sweep of
# PyTorch alone must not load Triton, and `--help` none of them.
_OURS: dict[str, Builder] = {
    "PyTorch": _build_eager,
    "torch.compile": _build_compiled,
    "Triton": _build_triton,
    "CUDA": _build_cuda,
}
_registered: dict[tuple[str, str], Builder] = {}


def implementation(operation: str, name: str) -> Callable[[_B], _B]:
    """Register an implementation of `operation` under `name`, in a file given to `profkit sweep --with FILE`.

        from profkit.sweep import implementation

        @implementation("GELU", "mine")
        def build(problem):
            (x,) = problem.inputs
            return lambda: my_gelu(x)

    The decorated function gets the problem (inputs on their device, and for a backward call the gradient from
    above) and returns the call that is timed, which returns the value, or a tuple of the gradients of the first
    inputs. It may raise Unavailable. Raises UsageError for an unknown operation, and for a name that is taken or
    invalid.
    """
    known = canonical_operation(operation)
    _check_name(name)
    for each in known:
        if (each, name) in _registered:
            raise UsageError(
                f"{each} has an implementation called {name!r} already", "give yours another name"
            )

    def register(build: _B) -> _B:
        _registered.update({(each, name): build for each in known})
        return build

    return register


def _check_name(name: str) -> None:
    """Raise UsageError for a name that a command line cannot hold, or that means another implementation there."""
    if not re.fullmatch(r"[^\s,]([^,]{0,98}[^\s,])?", name) or not name.isprintable():
        message = f"{ascii(name)[:100]} is not a name of an implementation"
        raise UsageError(message, "a text of 1 to 100 printable characters without a comma")
    same = next((known for known in implementations() if known.lower() == name.lower()), None)
    if same is not None and (same in _OURS or same != name):
        raise UsageError(f"{name!r} means {same}, which exists already", "give yours another name")


def canonical_operation(name: str) -> tuple[str, ...]:
    """Return the operations that `name` means: LayerNorm, layer_norm and layernorm are the same; Loss is two.

    Raises UsageError for an unknown name.
    """
    wanted = name.replace("_", "").replace("-", "").replace(" ", "").lower()
    for known in OPERATIONS:
        if known.lower() == wanted:
            return (known,)
    for group, members in GROUPS.items():
        if group.lower() == wanted:
            return members
    raise UsageError(f"there is no operation called {name!r}", f"--operations {','.join(OPERATIONS)}")


def implementations() -> tuple[str, ...]:
    """Return all names: ours, then those that were registered."""
    return tuple(dict.fromkeys((*_OURS, *(name for _, name in _registered))))


def has_implementation(implementation: str, operation: str) -> bool:
    """Return whether it exists: ours do every operation, a user's those that it was registered for."""
    return implementation in _OURS or (operation, implementation) in _registered


def registrations() -> Iterator[tuple[str, str]]:
    """Yield (operation, name) of what users registered."""
    yield from _registered


def canonical_implementation(name: str) -> str:
    """Return the implementation that `name` means. Raises UsageError for an unknown name."""
    for known in implementations():
        if known.lower() == name.lower():
            return known
    raise UsageError(
        f"there is no implementation called {name!r}", f"--implementations {','.join(implementations())}"
    )


def unregister(registrations: Iterable[tuple[str, str]]) -> None:
    """Remove (operation, name) again: a user's file that is run again registers them again."""
    for each in registrations:
        _registered.pop(each, None)


def build_call(implementation: str, problem: Problem) -> Call:
    """Build the call that is timed.

    Raises Unavailable where it cannot be used here, and what a user's builder raises.
    """
    operation = problem.operation.name
    registered = _registered.get((operation, implementation))
    if registered is not None:
        result: object = registered(problem)
        if not callable(result):
            raise TypeError(
                f"the registered function returned {type(result).__name__} instead of the call to time"
            )
        return result
    ours = _OURS.get(implementation)
    if ours is None:
        raise Unavailable(Fact.of("not-implemented", name=implementation, operation=operation))
    return ours(problem)


# ---------------------------------------------------------------- files of users

_added: dict[Path, set[tuple[str, str]]] = {}  # by each file, in this process


def run_file(path: Path) -> None:
    """Run the file; modules beside it can be imported, as when Python itself runs it. Raises what it raises."""
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    check_regular(path, DOCUMENT_BYTES)
    with redirect_stdout(sys.stderr):  # a document may be what is printed here
        runpy.run_path(str(path))


def register_files(files: Iterable[Path]) -> tuple[str, ...]:
    """Run the files here; return the names that they add. Raises UsageError where one fails, or adds none."""
    for file in (files := list(files)):  # a notebook runs them again and again
        unregister(_added.pop(file.resolve(), ()))
    before = set(implementations())
    for file in files:
        known = set(registrations())
        if not file.exists():
            raise UsageError(f"{file} does not exist", "--with FILE.py")
        try:
            run_file(file)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            line = next(iter(str(error).splitlines()), "")
            message = f"{type(error).__name__}: {line}"
            raise UsageError(
                f"{file} cannot be run: {message}", f"python {shlex.quote(str(file))}"
            ) from error
        finally:
            _added[file.resolve()] = set(registrations()) - known
        if not _added[file.resolve()]:
            raise UsageError(
                f"{file} registers no implementation",
                'from profkit.sweep import implementation; @implementation("GELU", "mine")',
            )
    return tuple(name for name in implementations() if name not in before)
