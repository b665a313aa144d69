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
    with __import__("profkit_pass_host.own_library", fromlist=("own_library",)).own_library:
        for variable, module in _INSTRUMENTS.items():
            if variable in os.environ:
                __import__(f"profkit_pass_host.{module}", fromlist=("start",)).start(os.environ[variable])


_INSTRUMENTS = {
    "PROFKIT_STACKS": "everywhere",
    "PROFKIT_OPERATION_CALLS": "operation_calls",
    "PROFKIT_LOADED_FILES": "loaded_files",
    "PROFKIT_INTERVENTIONS": "interventions",
}
if sys.version_info >= (3, 10) and any(name in os.environ for name in _INSTRUMENTS):
    try:
        _start()  # type: ignore[no-untyped-call]
    except BaseException:
        # the program comes first: an error here must not end it
        sys.modules.pop("profkit_pass_host", None)

sys.path[:] = [_folder for _folder in sys.path if os.path.abspath(_folder) != _here]
_self = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ImportError:
    if "sitecustomize" not in sys.modules and _self is not None:
        sys.modules["sitecustomize"] = _self
