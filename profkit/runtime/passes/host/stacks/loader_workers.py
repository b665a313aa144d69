"""Counts how often torch's loaders of data start their workers, by the line of the program that begins to go through.

An iterator with workers that end with it is made for each pass over the data: its making starts them. What that takes
is timed, the wait for the first batch, and ending the workers; the other batches are not touched.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from contextlib import suppress
from time import perf_counter
from typing import Any

from ..compilers import MAX_ROWS, add_to_file
from ..own_library import is_foreign

_Place = tuple[str, int, str]  # file, line, function


class _Passes:
    """The passes over loaders that begin at one line. Times in seconds."""

    def __init__(self) -> None:
        self.count = self.workers = self.batches = 0
        self.again = 0  # passes over a loader that had one before
        self.starting = self.first = self.ending = 0.0


class LoaderWorkers:
    """The counts of one process."""

    def __init__(self, out: str) -> None:
        self._out = out
        self._passes: dict[_Place, _Passes] = {}
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()  # loaders

    def start(self, module: Any) -> None:
        """Count from here on; `module` is torch.utils.data.dataloader."""
        reader = getattr(module, "_MultiProcessingDataLoaderIter", None)
        if reader is None:
            return
        make, end = reader.__init__, reader._shutdown_workers

        @functools.wraps(make)
        def made(new: Any, loader: Any, *args: Any, **named: Any) -> None:
            begun = perf_counter()
            make(new, loader, *args, **named)
            with suppress(Exception):  # the program comes first
                self._note(new, loader, perf_counter() - begun)

        @functools.wraps(end)
        def ended(old: Any) -> None:
            passes = None if getattr(old, "_shutdown", True) else vars(old).get("_profkit_passes")
            begun = perf_counter()
            end(old)
            if passes is not None:
                passes.ending += perf_counter() - begun
                passes.batches += getattr(old, "_num_yielded", 0)

        reader.__init__, reader._shutdown_workers = made, ended
        os.register_at_fork(after_in_child=self._passes.clear)

    def _note(self, new: Any, loader: Any, seconds: float) -> None:
        """Count that workers were started now, by making an iterator in `seconds`; those that stay are started once."""
        frame = sys._getframe(2)
        while frame.f_back is not None and is_foreign(frame.f_code.co_filename):
            frame = frame.f_back
        place = os.path.abspath(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name
        passes = self._passes.setdefault(place, _Passes())
        passes.count += 1
        passes.again += loader in self._seen
        passes.workers = max(passes.workers, loader.num_workers)
        passes.starting += seconds
        self._seen.add(loader)
        new._profkit_passes = passes
        new._next_data = functools.partial(_first_batch, weakref.ref(new), passes)

    def finish(self) -> None:
        """Write, as the process ends, the lines at which workers were started; times are in us."""
        ranked = sorted(self._passes.items(), key=lambda item: -item[1].starting - item[1].ending)
        rows = [
            [
                *place,
                passes.count,
                passes.again,
                passes.workers,
                passes.batches,
                *(round(1e6 * seconds) for seconds in (passes.starting, passes.first, passes.ending)),
            ]
            for place, passes in ranked[:MAX_ROWS]
        ]
        if rows:
            add_to_file(self._out, workers=rows)


def _first_batch(reader: Any, passes: _Passes) -> Any:
    """Return the first batch of an iterator, a weak reference, and get out of the way of the others."""
    own = reader()
    del own._next_data
    begun = perf_counter()
    try:
        return own._next_data()
    finally:
        passes.first += perf_counter() - begun
