"""A file of the user's as a module: it is run, and its functions are looked up."""

from __future__ import annotations

import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType

from profkit.kernels.evaluation.sources.names import LoadError
from profkit.kernels.evaluation.sources.source import Kernel


def load_module(path: Path, name: str) -> ModuleType:
    """Run the file and return its module.

    Files beside it can be imported, and belong to this file alone: each of two kernels may have a `utils.py`.
    Raises LoadError where the file cannot be read, and whatever it raises itself.
    """
    import torch

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LoadError(f"{path} is not a file of Python")
    module = importlib.util.module_from_spec(spec)
    beside = str(path.parent)
    before = set(sys.modules)
    sys.path.insert(0, beside)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        with torch.enable_grad():  # as where nobody has turned them off: it may train something at its top
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        if beside in sys.path:
            sys.path.remove(beside)
        sys.path.append(beside)  # for what is imported when the kernel is called
        for added in set(sys.modules) - before - {name}:
            if str(getattr(sys.modules[added], "__file__", None) or "").startswith(f"{beside}/"):
                del sys.modules[added]
    return module


def module_name(file: Path) -> str:
    """Return a module name that is unique for each file: a program may load `relu.py` of several folders."""
    return f"profkit_kernel_{file.stem}_{zlib.crc32(str(file.resolve()).encode()):08x}"


def find_function(module: ModuleType, names: tuple[str, ...]) -> Kernel:
    """Return the first of these functions that the module has. Raises LoadError, which lists those it has."""
    for name in names:
        function = getattr(module, name, None)
        if callable(function):
            return function  # type: ignore[no-any-return]
    there = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    file = Path(str(module.__file__)).name
    raise LoadError(f"{file} does not define {names[0]}; its functions: {', '.join(there) or 'none'}")
