"""The way in: becomes the package `profkit_pass_host`, leaves the module path, and runs the workload."""

import os
import sys


def _load_package(folder: str) -> None:
    """Load this folder and the region switches as a package whose name no module of the workload has."""
    package = type(sys)("profkit_pass_host")
    package.__path__ = [folder, os.path.join(os.path.dirname(os.path.dirname(folder)), "region")]
    package.main_module = sys.modules["__main__"]  # type: ignore[attr-defined]  # the workload's takes its place
    package.switch = None  # type: ignore[attr-defined]
    sys.modules[package.__name__] = package


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:1] = [] if sys.path and os.path.abspath(sys.path[0]) == here else sys.path[:1]
    _load_package(here)
    with __import__("profkit_pass_host.own_library", fromlist=("own_library",)).own_library:
        session = __import__("profkit_pass_host.session", fromlist=("prepare",)).prepare(sys.argv[1:])
    session.run()
