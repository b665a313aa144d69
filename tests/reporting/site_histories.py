"""Histories for the pages of a site, written by the store itself: what changes, what is missing, names that attack."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from profkit.core.types import RUN, AcceptedChange, Direction, Entry, Fact, Feature, Scope, SeriesKey, Value
from profkit.regression.history import open_history

BEGIN = datetime(2026, 5, 1, 2, 5, tzinfo=timezone.utc)
NIGHTS = 180
HOSTILE = """</script><script>window.hurt=1</script> "quoted" 'it' & <b>bold</b>\u2028"""
UNICODE = "Größe 模型 / v2"
OLD = (Feature("gpu.name", "NVIDIA H200", "must"), Feature("driver.major", "570", "must"))
NEW = (Feature("gpu.name", "NVIDIA H200", "must"), Feature("driver.major", "580", "must"))


@dataclass(frozen=True)
class Metric:
    """One metric of a made workload: its level, its noise, and by what it is multiplied from which night on."""

    name: str
    unit: str
    level: float
    noise: float = 0.004
    better: Direction = "lower"
    scope: Scope = RUN
    steps: tuple[tuple[int, float], ...] = ()
    interval: bool = False
    missing: tuple[int, ...] = ()

    def at(self, night: int, dice: random.Random) -> float:
        value = self.level * dice.gauss(1, self.noise)
        for begin, factor in self.steps:
            value *= factor if night >= begin else 1.0
        return value


def commit_of(night: int) -> str:
    """A commit that looks like one."""
    return hashlib.sha1(str(night // 2).encode()).hexdigest()


def day(night: int) -> str:
    """The date of a night."""
    return (BEGIN + timedelta(days=night)).date().isoformat()


MLP = (
    Metric("time.median", "s", 4.13e-3, 0.004, "lower", Scope("region", "gated_mlp"), ((70, 0.9), (168, 1.052)), True),
    Metric("instructions", "count", 8.1e9, 0.0002, steps=((168, 1.021),)),
    Metric("memory.device_peak", "B", 3.2e9, 0.0, steps=((120, 1.08),)),
    Metric("time.gpu", "s", 3.71e-3, steps=((70, 0.89), (168, 1.061))),
    Metric("occupancy.achieved", "%", 61.5, 0.01, "higher", steps=((168, 0.93),)),
    Metric("time.gpu", "s", 1.9e-3, 0.006, scope=Scope("kernel", "void gemm<float, 128>", "0x1"), steps=((168, 1.11),)),
    Metric("time.gpu", "s", 0.61e-3, 0.008, scope=Scope("kernel", "silu_and_mul", "0x2")),
    Metric("cache.l2_hit_rate", "%", 77.0, 0.02, "higher"),
    Metric("my own metric", "widgets/fortnight", 12.5, 0.03, "none", missing=tuple(range(90, 110))),
)  # fmt: skip
ATTENTION = (
    Metric("time.median", "s", 310e-6, 0.007, scope=Scope("region", "attention"), steps=((150, 0.83),), interval=True),
    Metric("time.p95", "s", 350e-6, 0.02, scope=Scope("region", "attention"), steps=((150, 0.86),)),
    Metric("memory.device_peak", "B", 5.1e8, 0.0),
)  # fmt: skip
NORM = (
    Metric("time.median", "s", 46e-6, 0.01, scope=Scope("region", "layer norm"), interval=True),
    Metric("time.gpu", "s", 44e-6, 0.008, steps=((112, 1.031),)),
)
SMALL = (Metric("time.median", "s", 1.8, 0.01, interval=True),)


def _entry(workload: str, at: int, metrics: tuple[Metric, ...], dice: random.Random, **more: object) -> Entry:
    values = []
    for metric in metrics:
        number = metric.at(at, dice)
        if at in metric.missing:
            continue
        low, high = (number * 0.996, number * 1.004) if metric.interval else (None, None)
        key = SeriesKey(workload, "cuda", metric.name, metric.scope)
        values.append(Value(key, metric.unit, metric.better, number, "measured", low, high))
    given: dict[str, object] = {
        "id": f"{at:08x}{abs(hash_of(workload)):08x}",
        "started": (BEGIN + timedelta(days=at, minutes=hash_of(workload) % 50)).isoformat(),
        "workload": workload,
        "backend": "cuda",
        "state": "complete",
        "source": "profkit",
        "machine": "abcdef0123456789",
        "features": NEW,
        "commit": commit_of(at),
        "night": f"nightly-{day(at)}",
        "values": tuple(values),
        "outcome": "pass",
    }
    return Entry(**{**given, **more})  # type: ignore[arg-type]


def hash_of(text: str) -> int:
    """A small number that is the same in every process."""
    return sum(map(ord, text)) * 2654435761 % 2**32


def entries(nights: int = NIGHTS) -> Iterator[Entry]:
    """The runs of all workloads, night by night."""
    dice = random.Random(11)
    for night in range(nights):
        outcome = "regressed" if night >= 170 else "improved" if night in (72,) else "pass"
        more: dict[str, object] = {"outcome": outcome}
        if night < 40:
            more |= {"machine": "7c1e9a04d2b85f36", "features": OLD}
        if night in (33, 101):
            more |= {
                "valid": False,
                "reason": Fact.message("the clock was throttled: 1,410 of 1,980 MHz"),
                "outcome": "invalid",
            }
        yield _entry("gated_mlp", night, MLP, dice, **more)
        if night % 9 != 4:  # now and then it does not run at all
            yield _entry(
                "attention forward", night, ATTENTION, dice, outcome="improved" if night == 152 else "pass"
            )
        yield _entry("layer norm", night, NORM, dice)
        machine = {"machine": f"pool-{night % 2}-0123456789"}  # runners that alternate, one of them slower
        slower = (Metric("time.median", "s", 1.8 * (1 + 0.1 * (night % 2)), 0.004, interval=True),)
        yield _entry(UNICODE, night, slower, dice, **machine, outcome=None, night=None, commit=None)
        if night > nights - 30:
            yield _entry(
                HOSTILE,
                night,
                _hostile(),
                dice,
                reason=Fact.message(HOSTILE),
                valid=night % 7 != 0,
                commit=HOSTILE,
            )
    yield _entry("one night", nights - 1, SMALL, dice, outcome="new")
    yield _entry(
        "failed",
        nights - 1,
        (),
        dice,
        state="failed",
        valid=False,
        reason=Fact.message("exit code 1"),
        outcome="missing",
    )


def _hostile() -> tuple[Metric, ...]:
    return (Metric("time.median", "s", 2e-3, scope=Scope("region", HOSTILE)), Metric(HOSTILE, HOSTILE, 1.0))


def write_history(path: Path, nights: int = NIGHTS) -> Path:
    """A history of all of them, with an accepted change."""
    with open_history(path) as history:
        for entry in entries(nights):
            history.add(entry)
        since = (BEGIN + timedelta(days=100)).isoformat()
        history.accept(AcceptedChange("attention forward", since, "the new softmax <b>", by="Ada"))
    return path
