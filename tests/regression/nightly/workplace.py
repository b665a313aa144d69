"""A nightly's file beside a throw-away repository, and a past for its history."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from profkit.regression.history import open_history
from profkit.regression.nightly.config import WorkloadSpec
from tests.git_repository import commit as commit
from tests.git_repository import git as git
from tests.git_repository import repository as repository


def spec(folder: Path, **more: object) -> WorkloadSpec:
    """The workload as quick as a profile can be."""
    told: dict[str, object] = {
        "name": "work",
        "command": ("python", "work.py"),
        "backend": "cpu",
        "passes": ("timing",),
        "timing": 0.1,
        "precision": 0.2,
        "cwd": folder,
        "budget": 30.0,
    }
    return WorkloadSpec(**{**told, **more})  # type: ignore[arg-type]


def aged(history: Path, nights: int = 10) -> None:
    """Give every run of a history as many quiet nights before it, alike to ±0.5 %: a past without its hours."""
    with open_history(history) as store:
        for bare in store.entries():
            entry = store.entry(bare.id)
            for number in range(nights):
                factor = 1 + 0.005 * ((number % 3) - 1)
                values = tuple(replace(v, value=v.value * factor, low=None, high=None) for v in entry.values)
                started = datetime.fromisoformat(entry.started) - timedelta(days=nights - number)
                store.add(
                    replace(entry, id=f"a{number}-{entry.id}", started=started.isoformat(), values=values)
                )
