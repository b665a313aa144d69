"""A second worker that loads Inductor while the first one measures what needs none, and then takes its place.

To load it takes ten seconds where Python keeps no bytecode, as in many containers. Until then the relief touches no
device: on each there is one process that measures.
"""

from __future__ import annotations

import threading

from profkit.kernels.sweep.hand import Died, Hand, TookTooLong

LOAD_SECONDS = 300.0


class Relief:
    """One such worker, and how far it is."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand
        self._loaded, self._settled, self._stop = False, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._load, name="relief", daemon=True)

    def begin(self) -> None:
        """Start it. Its thread lives as long as it does."""
        self._thread.start()

    @property
    def coming(self) -> bool:
        """Whether it is worth waiting for."""
        return not self._settled.is_set()

    def take(self) -> Hand | None:
        """The worker once, when it has loaded all; else None."""
        here, self._loaded = self._loaded, False
        return self.hand if here else None

    def wait(self, seconds: float) -> None:
        """Until it is here, or will not come, or so long."""
        self._settled.wait(seconds)

    def end(self) -> None:
        """No relief, nor the worker that it became."""
        self._stop.set()
        self.hand.close()

    def _load(self) -> None:
        try:
            self.hand.load(LOAD_SECONDS)
            self._loaded = True
        except (Died, TookTooLong):  # the first one loads it itself, then
            self.hand.close()
        finally:
            self._settled.set()
        self._stop.wait()
