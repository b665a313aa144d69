"""Run a file of kernels as a module of its own."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

from profkit.kernels.evaluation.sources.source import Kernel, LoadError


def load_module(path: Path, name: str) -> ModuleType:
    """The module that the file becomes when it is run.

    What lies beside the file can be imported, and belongs to this file alone: each of two kernels may have a
    `utils.py`. Raises LoadError where the file cannot be read, and whatever it raises itself.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LoadError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    beside = str(path.parent)
    before = set(sys.modules)
    sys.path.insert(0, beside)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        with _as_pytorch_begins():
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


def _as_pytorch_begins() -> AbstractContextManager[object]:
    """With gradients, as everywhere where nobody has turned them off: a file may train something at its top."""
    import torch

    gradients: AbstractContextManager[object] = torch.enable_grad()
    return gradients


def find_function(module: ModuleType, names: tuple[str, ...]) -> Kernel:
    """The first of the functions that the module has. Raises LoadError, which lists those it has."""
    for name in names:
        function = getattr(module, name, None)
        if callable(function):
            return function  # type: ignore[no-any-return]
    there = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    raise LoadError(
        f"{module.__file__} does not define {names[0]}; its functions: {', '.join(there) or 'none'}"
    )
