"""What a night costs beside the measuring: deciding and reporting, over a year of nights in the history.

10 workloads with 365 nights of 40 metrics each (two gate, the others are watched). Profiling is replaced by runs that
are recorded already. Limit: 2 s. Beside it a bare read of all series from the store.
CPU seconds, so that a busy machine is not taken for slow code: on a quiet one they are the wall's.

usage: python -m tests.performance.nightly_overhead [NIGHTS [WORKLOADS [METRICS]]]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from profkit.analysis.metrics import all_metrics
from profkit.core.progress import Silent
from profkit.core.types import Entry, Scope, SeriesKey, Value
from profkit.regression.history import History, open_history
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.nightly.session import NightSession, NightState, WorkloadState
from profkit.regression.nightly.workflow import decide_night, finish_night

LIMIT = 2.0  # seconds, of 10 workloads, 365 nights and 40 metrics
FIRST = datetime(2025, 1, 1, 2, tzinfo=timezone.utc)
SCOPE = Scope("region", "work")


def filled(history: History, nights: int, workloads: list[str], names: list[str]) -> dict[str, str]:
    """A year of noise; one workload in ten has a step. The ids of the last night's runs."""
    noise = random.Random(1)
    last = {}
    for name in workloads:
        for night in range(nights):
            values = []
            for number, metric in enumerate(names):
                centre = (1 + number) * (1.08 if name == workloads[0] and night > nights - 20 else 1.0)
                samples = tuple(centre * noise.gauss(1, 0.01) for _ in range(30 if number == 0 else 1))
                values.append(
                    Value(
                        SeriesKey(name, "cpu", metric, SCOPE),
                        "s",
                        "lower",
                        samples[0],
                        "measured",
                        groups=(samples,) if number == 0 else (),
                    )
                )
            entry = Entry(
                id=f"{name}-{night:04d}",
                started=(FIRST + timedelta(days=night)).isoformat(),
                workload=name,
                backend="cpu",
                state="complete",
                source="profkit",
                machine="m",
                commit=f"{night:040x}",
                values=tuple(values),
            )
            history.add(entry)
            last[name] = entry.id
    return last


def main() -> None:
    """Fill a history, then time the night's last part, three times."""
    nights, count, metrics = ([int(word) for word in sys.argv[1:]] + [365, 10, 40][len(sys.argv) - 1 :])[:3]
    families = ("time.", "memory.", "cache.", "bandwidth.", "branch.", "launch.", "occupancy.")
    names = ["time.median", "instructions", *(m.name for m in all_metrics() if m.name.startswith(families))]
    names = list(dict.fromkeys(names))[:metrics]
    workloads = [f"w{number}" for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="profkit-overhead-") as place:
        folder = Path(place)
        with open_history(folder / "history.sqlite") as history:
            last = filled(history, nights, workloads, names)
        specs = tuple(WorkloadSpec(name, watches=tuple(names)) for name in workloads)
        usual = tuple(replace(spec, watches=WorkloadSpec("x").watches) for spec in specs)
        print(f"{count} workloads, {nights} nights, {len(names)} metrics\n")
        print("| what | CPU seconds | against a bare read |\n| --- | --- | --- |")
        bare = min(_read(folder) for _ in range(2))
        print(f"| a bare read of all series, without samples | {bare:.2f} | 1 x |")
        for what, chosen in (
            ("gates and the usual watches", usual),
            (f"all {len(names)} metrics watched", specs),
        ):
            took = min(_night(folder, chosen, last) for _ in range(2))
            print(f"| deciding and reporting, {what} | {took:.2f} (limit {LIMIT:g}) | {took / bare:.1f} x |")


def _read(folder: Path) -> float:
    with open_history(folder / "history.sqlite", read_only=True) as history:
        start = time.process_time()
        history.series()
        return time.process_time() - start


def _night(folder: Path, specs: tuple[WorkloadSpec, ...], last: dict[str, str]) -> float:
    config = NightConfig(folder / "n.yaml", "overhead", folder / "history.sqlite", folder, specs)
    start = time.process_time()
    with open_history(config.history) as history:
        state = NightState(
            "n", FIRST.isoformat(), done={name: WorkloadState("done", entry=id) for name, id in last.items()}
        )
        session = NightSession(config, folder / "n", state, history, Silent(), time.monotonic(), [])
        finish_night(session, decide_night(session, specs, interrupted=False, strict=False), strict=False)
    return time.process_time() - start


if __name__ == "__main__":
    main()
