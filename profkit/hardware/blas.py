"""Threads of numeric libraries: set by environment, since a loaded library keeps what it began with."""

from __future__ import annotations

# One variable per library that numpy or torch may be built on, or that makes threads beside them; setting them all
# costs nothing.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


def thread_environment(threads: int) -> dict[str, str]:
    """The environment in which a fresh process computes with `threads` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def library_name() -> str:
    """Name and version of the library behind numpy's products, or `an unnamed BLAS`."""
    import numpy

    try:
        told = numpy.show_config(mode="dicts")
        blas = told["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    except (TypeError, KeyError):  # numpy before 1.26 only prints
        return "an unnamed BLAS"
