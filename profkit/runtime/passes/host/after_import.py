"""Something to be done once the workload has imported a module: neither is hurried, and no module is loaded for it."""

from __future__ import annotations

import sys

# type checkers take it for true; importing typing costs each process of the workload 3 ms
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def call_after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call `act` with the module once somebody has imported it; what it raises is said and goes no further."""

    class Finder:
        @staticmethod
        def find_spec(wanted: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
            if wanted != name or finder not in sys.meta_path:
                return None
            sys.meta_path.remove(finder)
            # importlib's own look would be one more module, and the workload's where it has one of that name
            finders = list(sys.meta_path)
            spec = next((found for other in finders if (found := other.find_spec(wanted, None))), None)
            loader: Any = spec.loader if spec is not None else None
            if loader is None or not hasattr(loader, "exec_module"):
                return spec
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                try:
                    act(module)
                except Exception as error:
                    print(f"profkit: {name} is not traced: {error}", file=sys.stderr)

            loader.exec_module = exec_module
            return spec

    finder = Finder()
    sys.meta_path.insert(0, finder)
