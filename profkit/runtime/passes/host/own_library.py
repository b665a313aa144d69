"""What measures imports the interpreter's own library, whatever the workload's files are called; the workload its own.

A workload may be a `copy.py`, or lie beside one: `import copy` of ours, and those inside of the library, must not find
it. What was loaded for us is then taken out of `sys.modules`, so that the workload's `import copy` searches its path as
it would without us; where that leads to the file that we loaded, it gets the module that is there already.

What is not as without us: a module of the library that was loaded for us keeps what it imported, so `import json` works
beside a `re.py` that would have broken it; one that the workload loaded before us keeps the workload's `re`, also for
us; and another thread that imports a file named like the library in the moment of an import of ours may load it twice.
"""

# no `from __future__`, here and where this is imported from: it would be the workload's `__future__.py`
import os
import sys
from _thread import get_ident

TYPE_CHECKING = False  # in each process of the workload: typing would cost 3 ms
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_NAMES = sys.stdlib_module_names
_LIBRARY = os.path.dirname(os.__file__)
_VERSION = "".join(map(str, sys.version_info[:2]))
_FOLDERS = [
    folder
    for folder in sys.path
    if folder == _LIBRARY
    or (
        folder.startswith((sys.base_prefix + os.sep, sys.base_exec_prefix + os.sep))
        and os.path.basename(folder) in ("lib-dynload", "DLLs", f"python{_VERSION}.zip")
    )
] or [_LIBRARY]
_INSIDE = tuple(os.path.join(folder, "") for folder in _FOLDERS)
# Importing importlib would cost 3 ms.
_path_finder: "Any" = sys.modules["_frozen_importlib_external"].PathFinder


class OwnLibrary:
    """`with own_library:` around imports of ours, in any thread; first of `sys.meta_path` from the first use on."""

    def __init__(self) -> None:
        self._importing: dict[int, int] = {}  # thread -> how many blocks it is in
        self._before: set[str] = set()  # modules that were there when the first thread came
        self._theirs: dict[str, ModuleType] = {}  # the workload's of a library's name, out of sight meanwhile
        # the library's that were loaded for us, out of sight otherwise
        self._kept: dict[str, ModuleType] = {}

    def __enter__(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        if not self._importing:
            self._theirs = self._find_theirs()
            for name in self._theirs:
                del sys.modules[name]
            self._before = set(sys.modules)
            sys.modules.update(self._kept)
        thread = get_ident()
        self._importing[thread] = self._importing.get(thread, 0) + 1

    def __exit__(self, *_: object) -> None:
        thread = get_ident()
        self._importing[thread] -= 1
        if self._importing[thread]:
            return
        del self._importing[thread]
        if not self._importing:
            for name in sys.modules.keys() - self._before:
                if _is_of_library(name, sys.modules[name]):
                    self._kept[name] = sys.modules.pop(name)
            sys.modules.update(self._theirs)

    def find_spec(self, name: str, path: "Any" = None, _target: object = None) -> "ModuleSpec | None":
        """The library's file for imports of ours; for the workload's, what we loaded if it would find just that."""
        if name in self._kept:
            spec: ModuleSpec | None = _path_finder.find_spec(name, path)
            if spec is not None and spec.origin == self._kept[name].__file__:
                spec.loader = _Loaded(self, spec.loader)  # type: ignore[assignment]
                return spec
        elif path is None and get_ident() in self._importing and name in _NAMES:
            found: ModuleSpec | None = _path_finder.find_spec(name, _FOLDERS)
            return found
        return None

    def give(self, name: str) -> "ModuleType":
        """The module, which is no longer ours alone; what was loaded of a package goes with it."""
        for each in [each for each in self._kept if each.startswith(f"{name}.")]:
            sys.modules[each] = self._kept.pop(each)
        return self._kept.pop(name)

    @staticmethod
    def _find_theirs() -> "dict[str, ModuleType]":
        tops = {
            name
            for name in _NAMES & sys.modules.keys()
            if getattr(sys.modules[name], "__file__", None) and not _is_of_library(name, sys.modules[name])
        }
        return (
            {name: module for name, module in sys.modules.items() if name.partition(".")[0] in tops}
            if tops
            else {}
        )


class _Loaded:
    """Loads a module that is there already."""

    def __init__(self, library: OwnLibrary, loader: "Any") -> None:
        self._library, self._loader = library, loader

    def create_module(self, spec: "ModuleSpec") -> "ModuleType":
        module = self._library.give(spec.name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: "ModuleType") -> None:
        module.__spec__ = self._own_spec

    def __getattr__(self, name: str) -> "Any":  # for who only looks where a module is
        return getattr(self._loader, name)


def _is_of_library(name: str, module: "ModuleType") -> bool:
    file = getattr(module, "__file__", None)
    return name.partition(".")[0] in _NAMES and isinstance(file, str) and file.startswith(_INSIDE)


# One for the process: what a pass loaded at its start, a region has too. Each knows this file by another name.
_loaded = [
    sys.modules.get(name)
    for name in ("profkit_pass_host.own_library", "profkit.runtime.passes.host.own_library")
]
own_library: OwnLibrary = next(
    filter(None, (vars(each).get("own_library") for each in _loaded if each)), OwnLibrary()
)


# Source files of what measures.
_HERE = os.path.dirname(os.path.abspath(__file__))
_RUNTIME = os.path.dirname(os.path.dirname(_HERE))
_OWN_FOLDERS = (
    *(os.path.join(_RUNTIME, name, "") for name in ("passes", "region")),
    os.path.join(os.path.dirname(_RUNTIME), "fronts", ""),
)


def is_own(path: str) -> bool:
    """Whether a source file belongs to what measures, and so to no workload."""
    return path.startswith(_OWN_FOLDERS)
