"""Runs at the start of every Python below a profiled command, of any version, before the program.

It starts the instruments that follow child processes, then leaves the module path and makes way for the sitecustomize
that it hides. Nothing may break here.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _start():  # type: ignore[no-untyped-def]
    package = type(sys)("profkit_pass_host")  # made by hand: importlib.util would cost each process 3 ms
    package.__path__ = [os.path.join(os.path.dirname(_here), "host")]
    package.switch = None  # type: ignore[attr-defined]
    sys.modules[package.__name__] = package
    if "PROFKIT_STACKS" in os.environ:
        from profkit_pass_host import everywhere  # type: ignore[import-not-found]

        everywhere.start(os.environ["PROFKIT_STACKS"])
    if "PROFKIT_OPERATION_CALLS" in os.environ:
        from profkit_pass_host import operation_calls

        operation_calls.start(os.environ["PROFKIT_OPERATION_CALLS"])
    if "PROFKIT_LOADED_FILES" in os.environ:
        from profkit_pass_host import loaded_files

        loaded_files.start(os.environ["PROFKIT_LOADED_FILES"])


_INSTRUMENTS = ("PROFKIT_STACKS", "PROFKIT_OPERATION_CALLS", "PROFKIT_LOADED_FILES")
if sys.version_info >= (3, 10) and any(name in os.environ for name in _INSTRUMENTS):
    try:
        _start()  # type: ignore[no-untyped-call]
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
