"""Whether the workload marked a region while it ran, where that could only be guessed before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.types import Step


def entered_region(steps: Iterable[Step]) -> bool:
    """Whether any process of these steps entered a region: each that does leaves a record."""
    return any(_records(step) for step in steps)


def forget(steps: Iterable[Step], folder: Path) -> None:
    """Remove what the steps left in `folder/artifacts`, before they are carried out once more."""
    for step in steps:
        for path in (folder / "artifacts").glob(f"{step.name}.*"):
            path.unlink(missing_ok=True)


def _records(step: Step) -> list[Path]:
    if step.directive is None:
        return []
    record = Path(step.directive.record)
    return list(record.parent.glob(f"{record.name}.*.json"))
