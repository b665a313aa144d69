"""Runs at the start of every Python below a profiled command, of any version, before the program.

It starts the instruments that follow child processes, then leaves the module path and makes way for the sitecustomize
that it hides. Nothing may break here.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _start(out):  # type: ignore[no-untyped-def]
    import importlib.util

    folder = os.path.join(os.path.dirname(_here), "host")
    name = "profkit_pass_host"
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    importlib.import_module(name + ".everywhere").start(out)


if "PROFKIT_STACKS" in os.environ and sys.version_info >= (3, 10):
    try:
        _start(os.environ["PROFKIT_STACKS"])  # type: ignore[no-untyped-call]
    except BaseException:
        sys.modules.pop(
            "profkit_pass_host", None
        )  # the program comes first, and it was not asked whether it may fail

sys.path[:] = [_folder for _folder in sys.path if os.path.abspath(_folder) != _here]
_self = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ImportError:
    if "sitecustomize" not in sys.modules and _self is not None:
        sys.modules["sitecustomize"] = _self
