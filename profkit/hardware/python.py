"""The Python that profkit itself runs on: it belongs to what decides whether two runs may be compared."""

from __future__ import annotations

import platform


def own_python() -> str:
    """`3.11.7`, or with its name where it is not CPython: `PyPy 3.10.14`."""
    name, version = platform.python_implementation(), platform.python_version()
    return version if name == "CPython" else f"{name} {version}"
