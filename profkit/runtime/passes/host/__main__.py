"""The way in: becomes the package `profkit_pass_host`, leaves the module path, and runs the workload."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

PACKAGE_NAME = "profkit_pass_host"


def _load_package(folder: str) -> ModuleType:
    """This folder as a package of a name that no module of the workload has."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE_NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE_NAME] = package
    spec.loader.exec_module(package)
    return package


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:1] = [] if sys.path and os.path.abspath(sys.path[0]) == here else sys.path[:1]
    # kept, since the workload's own __main__ takes its place
    _load_package(here).main_module = sys.modules["__main__"]  # type: ignore[attr-defined]
    importlib.import_module(f"{PACKAGE_NAME}.session").main(sys.argv[1:])
