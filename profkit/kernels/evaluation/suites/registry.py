"""Which suites there are: by name, a user's file of tests, or a trace."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.kernels.evaluation.suites.suite import Suite

_PACKAGE = "profkit.kernels.evaluation.suites"
# A module is imported when its suite is first asked for: all of them import torch.
_SUITES = {
    "smoke": (f"{_PACKAGE}.smoke", "Smoke"),
    "opinfo": (f"{_PACKAGE}.opinfo", "OpInfo"),
    "torchbench": (f"{_PACKAGE}.traces", "torchbench"),
    "traced": (f"{_PACKAGE}.traces", "traced"),
}
_OF_TRACES = ("torchbench", "traced")


def suite_names() -> tuple[str, ...]:
    """Those that come with profkit."""
    return tuple(_SUITES)


def find_suite(name: str, path: Path | None = None, most: int | None = None, *, device: str = "cpu") -> Suite:
    """The suite called so, as `_find_suite` has it, for kernels on the device: cpu or cuda."""
    suite: Any = _find_suite(name, path, most)
    known = is_dataclass(suite) and any(field.name == "device" for field in fields(suite))
    return replace(suite, device=device) if known else suite  # type: ignore[no-any-return]


def _find_suite(name: str, path: Path | None, most: int | None) -> Suite:
    """The suite called so, or the one in the file of that name: `FILE.py` with tests, else a trace.

    `path`: the trace, or the user's file, that `traced` consists of, and that `torchbench` takes in place of its own
    table. `most`: tests of an operation, where the suite would have more. Raises UsageError where there is no such
    suite.
    """
    limit: dict[str, Any] = {} if most is None else {"most": most}
    if name in _SUITES:
        module, maker = _SUITES[name]
        make = getattr(import_module(module), maker)
        if name in _OF_TRACES and path is not None and path.suffix == ".py":
            return _find_suite(str(path), None, None)
        if name in _OF_TRACES:
            return make(path, **limit)  # type: ignore[no-any-return]
        if path is not None:
            raise UsageError(
                f"the suite {name} takes no trace", f"--suite {'|'.join(_OF_TRACES)} --traces {path}"
            )
        return make(**limit) if name == "opinfo" else make()  # type: ignore[no-any-return]
    file = Path(name)
    if file.suffix == ".py" and file.is_file():
        return import_module(f"{_PACKAGE}.user_file").load_suite(file)  # type: ignore[no-any-return]
    if file.suffix != ".py" and file.exists():
        return import_module(f"{_PACKAGE}.traces").traced(file, **limit)  # type: ignore[no-any-return]
    raise UsageError(
        f"there is no suite called {name!r}", f"--suite {'|'.join((*_SUITES, 'FILE.py', 'TRACE.txt'))}"
    )
