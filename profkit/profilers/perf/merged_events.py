"""Samples merged per event, however many events one recording has: what both sample readers end in."""

from __future__ import annotations

from profkit.analysis.stacks.merge import FrameTable, StackMerger
from profkit.core.errors import UnreadableReport
from profkit.core.types import Profile, Stacks
from profkit.profilers.perf.weights import by_thread, is_user_only, scale_of

MOST_EVENTS = 1000  # perf itself takes far fewer; more are a sign of another kind of file
MOST_THREADS = 10_000

Name = str | bytes  # bytes are decoded at the end: a reader of millions of samples need not do so for each


class MergedEvents:
    """One StackMerger per event, and the weight per thread name."""

    def __init__(self, table: FrameTable) -> None:
        self._table = table
        self._events: dict[tuple[Name, bool], tuple[StackMerger, dict[Name, float]]] = {}

    def add(self, event: Name, period: int | None, thread: Name, ids: tuple[int, ...]) -> None:
        """Count one sample (frames innermost first). Without a period it weighs 1, in `samples`."""
        found = self._events.get((event, period is None))
        if found is None:
            if len(self._events) >= MOST_EVENTS:
                raise UnreadableReport(f"it names more than {MOST_EVENTS} events: not a recording of perf")
            found = self._events[event, period is None] = (StackMerger(self._table), {})
        merger, threads = found
        weight = 1 if period is None else period
        merger.add(ids, weight)
        if thread not in threads and len(threads) >= MOST_THREADS:
            thread = "[more threads]"
        threads[thread] = threads.get(thread, 0) + weight

    @property
    def samples(self) -> int:
        """How many samples there were, of all events."""
        return sum(merger.samples for merger, _ in self._events.values())

    def facts(self) -> dict[str, str]:
        """`samples`, and `events` where the recording names them, as perf writes them (`cycles:u`)."""
        names = dict.fromkeys(_text(event) for event, _ in self._events if event)
        return {"samples": str(self.samples), **({"events": " ".join(names)} if names else {})}

    def warnings(self) -> list[str]:
        """Where bounds were reached, and what the events leave out."""
        found = [
            f"{_text(event) or 'samples'}: too many distinct stacks; the inner frames of "
            f"{100 * merger.cut / merger.weight:.1f} % of the weight are not kept apart in the stacks "
            "(the tables are exact)"
            for (event, _), (merger, _) in self._events.items()
            if merger.cut
        ]
        found += [
            f"{_text(event)}: user space only; what the kernel did is not in it"
            for event in dict.fromkeys(event for event, _ in self._events)
            if is_user_only(_text(event))
        ]
        if self._table.full:
            found.append("too many different functions: the later ones are not told apart")
        return found

    def answer(self) -> tuple[tuple[Stacks, ...], tuple[Profile, ...]]:
        """Stacks of each event, the one with most samples first; tables by function, library and thread of each.

        The table by thread is left out where there is but one name.
        """
        stacks: list[Stacks] = []
        profiles: list[Profile] = []
        for (event, bare), (merger, threads) in sorted(self._events.items(), key=lambda e: -e[1][0].samples):
            title = _text(event) or "samples"
            unit, per = scale_of(title, with_period=not bare)
            stacks.append(merger.stacks(title, unit, per))
            profiles += merger.profiles(title, unit, per)
            if len(threads) > 1:
                names: dict[str, float] = {}
                for name, weight in threads.items():
                    names[_text(name)] = names.get(_text(name), 0) + weight
                profiles.append(by_thread(title, unit, names, per))
        return tuple(stacks), tuple(profiles)


def _text(name: Name) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "replace")
