"""What a sweep is asked to do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from profkit.kernels.sweep.grid import Grid
from profkit.kernels.sweep.wish import Wish


@dataclass(frozen=True)
class SweepRequest:
    """What somebody asked for. `gpus` are the devices that share it, a worker each; `timeout` is seconds per case.

    `again`: cases that were settled without a time before are tried once more.
    """

    grid: Grid
    folder: Path
    device: str  # "cuda" or "cpu"
    gpus: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    wish: Wish = field(default_factory=Wish)
    timeout: float = 300.0
    python: str = "python3"
    name: str = "sweep"
    again: bool = False

    @property
    def header(self) -> dict[str, Any]:
        """What a journal says of it, as plain data: two requests of one header measure the same."""
        found: dict[str, Any] = json.loads(
            json.dumps(
                {
                    "name": self.name,
                    "rules": {"device": self.device, "wish": asdict(self.wish)},
                    "grid": asdict(self.grid),
                    "gpus": self.gpus,
                    "files": self.files,
                    "timeout": self.timeout,
                }
            )
        )
        return found
