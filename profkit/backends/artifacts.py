"""The names of the files in a run's folder, made from what each pass declares (`Pass.step_names`, `leaves`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from profkit.backends import backend_named, backend_names
from profkit.core.files.names import FileNames
from profkit.core.run_folder import FILE_NAME
from profkit.core.types import TrialName

_RECORDS = ("{}.#.json", "{}.switch", "{}.region.#.json", "{}.region.switch", "{}.status")  # of each step
_LOGS = ("{}.log", "{}.after#.log")
_OTHERS = (FILE_NAME, "logs/peaks.log", *(f"logs/try-{name}.log" for name in get_args(TrialName)))


def run_files(backend: str | None = None) -> FileNames:
    """Return the names of all files that a run of this backend may leave; of any, where none is given or known.

    Its pages are not among them: they are made anew. Only what belongs to the backend is loaded.
    """
    backends = (backend,) if backend is not None and backend in backend_names() else backend_names()
    return FileNames((*_OTHERS, *_names(backends)))


def _names(backends: Iterable[str]) -> Iterator[str]:
    """Yield the names of the artifacts and logs of these backends' passes."""
    for kind in {kind for name in backends for kind in backend_named(name).pass_kinds()}:
        for step in kind.step_names:
            yield from (f"artifacts/{record.format(step)}" for record in _RECORDS)
            yield from (f"logs/{log.format(step)}" for log in _LOGS)
        yield from (f"artifacts/{name}" for name in kind.leaves)
