"""What the doctor looks at, in order, for each backend."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from profkit.core.types import Check

BACKENDS = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class Subject:
    """One thing to look at: its title for the progress line, and the look itself."""

    title: str
    look: Callable[[], Iterable[Check]]


def subjects_for(backend: str) -> tuple[Subject, ...]:
    """The subjects of a backend, each loaded only when it is looked at.

    The noise comes first: the looks after it start processes and would be heard.
    """
    common = (
        Subject("noise", _noise),
        Subject("machine", _machine),
        Subject("storage", _storage),
        Subject("python", _python),
    )
    instruments = Subject(
        "instruments", _instruments
    )  # in the place of perf and valgrind, which macOS has not
    mac = platform.system() == "Darwin"
    profilers = (instruments,) if mac else (Subject("perf", _perf), Subject("valgrind", _valgrind))
    cpu = (Subject("peaks", _peaks), *profilers)
    cuda, mps = (Subject("cuda", _cuda),), (*((instruments,) if mac else ()), Subject("mps", _mps))
    chosen = {"cpu": cpu, "cuda": cuda, "mps": mps}.get(backend, tuple(dict.fromkeys((*cpu, *cuda, *mps))))
    return (*common, *chosen)


def _noise() -> Iterable[Check]:
    from profkit.hardware.noise import noise_checks

    return noise_checks()


def _machine() -> Iterable[Check]:
    from profkit.profiling.doctor.machine import machine_checks

    return machine_checks()


def _storage() -> Iterable[Check]:
    from profkit.profiling.doctor.storage import storage_checks

    return storage_checks()


def _python() -> Iterable[Check]:
    from profkit.profiling.doctor.python import python_checks

    return python_checks()


def _peaks() -> Iterable[Check]:
    from profkit.profiling.doctor.peaks import peaks_checks

    return peaks_checks()


def _perf() -> Iterable[Check]:
    from profkit.profilers.perf.checks import perf_checks

    return perf_checks()


def _valgrind() -> Iterable[Check]:
    from profkit.profilers.valgrind.probe import valgrind_checks

    return valgrind_checks()


def _instruments() -> Iterable[Check]:
    from profkit.profilers.xctrace.checks import instruments_checks

    return instruments_checks()


def _cuda() -> Iterable[Check]:
    from profkit.profiling.doctor.cuda import cuda_checks

    return cuda_checks()


def _mps() -> Iterable[Check]:
    from profkit.profiling.doctor.mps import mps_checks

    return mps_checks()
