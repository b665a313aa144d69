"""What measures imports the interpreter's own library, whatever the workload's files are called; the workload its own.

A workload may be a `copy.py`, or lie beside one: `import copy` of ours, and those inside of the library, must not find
it. What was loaded for us, and has the name of a file where the workload looks first, is then taken out of
`sys.modules`, so that its `import copy` finds its own. Not seen are folders that it puts into sys.path later.
"""

# no `from __future__`, here and where this is imported from: it would be the workload's `__future__.py`
import os
import sys

TYPE_CHECKING = False  # in each process of the workload: typing would cost 3 ms
if TYPE_CHECKING:
    from types import ModuleType

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


class OwnLibrary:
    """`with own_library:` around imports of ours: the library is searched first, and the workload's is out of sight."""

    def __init__(self) -> None:
        self._blocks: list[tuple[list[str], set[str], dict[str, ModuleType]]] = []

    def __enter__(self) -> None:
        tops = {name for name in _NAMES & sys.modules.keys() if _is_theirs(sys.modules[name])}
        theirs = {name: sys.modules[name] for name in list(sys.modules) if name.partition(".")[0] in tops}
        for name in theirs:
            del sys.modules[name]
        self._blocks.append((sys.path[:], set(sys.modules), theirs))
        sys.path.sort(key=lambda folder: folder not in _FOLDERS)

    def __exit__(self, *_: object) -> None:
        path, before, theirs = self._blocks.pop()
        sys.path[:] = path
        new = {name: name.partition(".")[0] for name in sys.modules.keys() - before}
        shadowed = _shadowed_names({top for top in new.values() if top in _NAMES})
        for name, top in new.items():
            if top in shadowed:
                del sys.modules[name]
        sys.modules.update(theirs)


def _is_theirs(module: "ModuleType") -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not file.startswith(_INSIDE)


def _shadowed_names(names: set[str]) -> set[str]:
    """Return those that are files or folders where the workload looks before the library."""
    scripts = [os.path.realpath(word) for word in sys.orig_argv[1:] if os.path.isfile(word)]
    first = next((place for place, folder in enumerate(sys.path) if folder in _FOLDERS), 0)
    folders = {*map(os.path.dirname, scripts), "", *sys.path[:first]}
    found: set[str] = set()
    for folder in folders:
        try:
            found |= {name.partition(".")[0] for name in os.listdir(folder or ".")} & names
        except OSError:  # an archive, a folder that is gone
            continue
    return found


own_library = OwnLibrary()


# Source files of what measures.
_HERE = os.path.dirname(os.path.abspath(__file__))
_RUNTIME = os.path.dirname(os.path.dirname(_HERE))
_OWN_FOLDERS = (
    *(os.path.join(_RUNTIME, name, "") for name in ("passes", "region")),
    os.path.join(os.path.dirname(_RUNTIME), "fronts", ""),
)


def is_own(path: str) -> bool:
    """Return whether a source file belongs to what measures, and so to no workload."""
    return path.startswith(_OWN_FOLDERS)


_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")


def is_foreign(file: str) -> bool:
    """Return whether a file is of Python, of a package, or our own."""
    inside = any(folder in file for folder in _PACKAGES)
    return inside or is_own(file) or file.startswith(("<frozen", _STANDARD))
