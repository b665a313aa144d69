"""What is left out of a table of samples, and what it does not tell: counted while it is read, said in sentences."""

from __future__ import annotations

from profkit.core.formatting import percent, plural
from profkit.profilers.xctrace.cells import Process, Thread
from profkit.profilers.xctrace.cpu_samples import SAMPLES, SampleTally, Unit
from profkit.profilers.xctrace.tables import Table

MOST_PROCESSES = 1_000  # that are told apart
# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100
_NAMED = 3  # other processes that a sentence names


class CpuNotes:
    """Whose samples count, and what became of the others, of one table."""

    def __init__(self, table: Table, target: Process | None) -> None:
        self._table = table
        self._target = target
        self._seen: dict[str, list[float]] = {}  # process -> samples, weight; of those that count or not
        self._unit: Unit | None = None
        # Such a table holds samples of what was profiled only, whatever name that had when the recording ended.
        self._single = table.attributes.get("target-pid") == "SINGLE"
        self.weightless = 0

    def counts(self, process: Process | None, weight: float | None, unit: Unit) -> bool:
        """Note a sample of `process`; whether it counts. One of which no process is told counts."""
        self._unit = unit
        target = self._target
        if process is None:
            return True
        same = target is None or (
            process.pid == target.pid
            if process.pid is not None and target.pid is not None
            else process.name == target.name
        )
        if same and target is not None:
            return True
        name = _named(process) if len(self._seen) < MOST_PROCESSES else "[more processes]"
        row = self._seen.setdefault(name, [0, 0])
        row[0] += 1
        row[1] += weight or 0
        return same or self._single

    def thread(self, thread: Thread | None, process: Process | None) -> str:
        """How a thread is called in tables."""
        if thread is None:
            return "[unknown thread]"
        name = thread.name or "thread"
        if thread.tid is not None:
            name = f"{name} 0x{thread.tid:x}"
        return (
            f"{name} of {_named(process)}"
            if self._target is None and process and len(self._seen) > 1
            else name
        )

    def warnings(self, tally: SampleTally, *, restricted: bool) -> list[str]:
        """Sentences about what does not count, and what is not known."""
        schema = self._table.schema
        found = [*self._others(schema)]
        if not tally.samples:
            found.append(self._nothing(schema, restricted=restricted))
        if tally.waiting:
            found.append(
                f"{schema}: {plural(tally.waiting, 'sample')} of threads that waited "
                f"stand apart, as waiting and not as CPU time"
            )
        if tally.samples and tally.without_stack:
            share = percent(100 * tally.without_stack / (tally.samples + tally.waiting))
            found.append(
                f"{schema}: {plural(tally.without_stack, 'sample')} ({share} %) without a stack: where is not known"
            )
        if tally.uneven:
            named = self._table.attributes.get("pmc-events")
            found.append(
                f"{schema}: the counts of {plural(tally.uneven, 'sample')} do not fit the events that the table of "
                f"contents names ({named}), so none is told"
                if named
                else f"{schema}: it has counts, and which events they are of stands in the table of contents only "
                "(xctrace export --input DOCUMENT --toc --output toc.xml, beside it)"
            )
        if self.weightless:
            found.append(f"{schema}: {plural(self.weightless, 'sample')} without a weight count for nothing")
        if tally.cut:
            found.append(
                f"{schema}: too many distinct stacks; the inner frames of {percent(100 * tally.cut)} % of the weight "
                "are not kept apart in the stacks (the tables are exact)"
            )
        if schema == "time-sample" and tally.samples:
            found.append(
                "time-sample has addresses and no names of functions: export time-profile of the same document"
            )
        if 0 < tally.samples < ENOUGH_SAMPLES and tally.unit != SAMPLES:
            found.append(f"{schema}: only {plural(tally.samples, 'sample')}, so shares are rough")
        return found

    def _nothing(self, schema: str, *, restricted: bool) -> str:
        where = " in the marked region" if restricted else ""
        if self._target is not None and self._seen:
            return f"{schema}: no sample of {_named(self._target)}{where}"
        return f"{schema}: it holds no sample{where}"

    def _others(self, schema: str) -> list[str]:
        if not self._seen or self._unit is None:
            return []
        ordered = sorted(self._seen.items(), key=lambda one: (-one[1][1], one[0]))
        names = ", ".join(name for name, _ in ordered[:_NAMED]) + (", ..." if len(ordered) > _NAMED else "")
        samples = int(sum(row[0] for row in self._seen.values()))
        if self._target is not None and self._single:
            return [
                f"{schema}: its samples are of {names}, and the table of contents names {_named(self._target)}: they "
                "are counted, since the table is of one process"
            ]
        if self._target is not None:
            return [f"{schema}: not counted: {plural(samples, 'sample')} of other processes ({names})"]
        if len(ordered) > 1:
            return [
                f"{schema}: samples of {len(ordered)} processes are counted together ({names}): which one was profiled "
                "stands in the table of contents only (toc.xml, in the same folder)"
            ]
        return []


def _named(process: Process | None) -> str:
    if process is None:
        return "[unknown process]"
    return process.name if process.pid is None else f"{process.name} ({process.pid})"
