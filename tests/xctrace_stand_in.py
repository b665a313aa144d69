"""A Mac for tests: the stand-ins for xctrace and xcrun, and what they are told to do."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

STAND_INS = ROOT / "tests" / "stand_ins" / "xctrace"
XCTRACE, XCRUN = STAND_INS / "xctrace", STAND_INS / "xcrun"


@dataclass(frozen=True)
class Instruments:
    """The environment in which xctrace is the stand-in that behaves as told, and the calls that it got."""

    folder: Path
    env: dict[str, str]

    def calls(self, verb: str | None = None) -> list[list[str]]:
        """The arguments of each call of the stand-in, of those of one verb."""
        file = self.folder / "xctrace.calls"
        lines = file.read_text().splitlines() if file.exists() else []
        calls = [json.loads(line)[1:] for line in lines]
        return [call for call in calls if verb is None or call[:1] == [verb]]


def instruments(folder: Path, **scenario: Any) -> Instruments:
    """See tests/stand_ins/xctrace/xctrace for what a scenario may say."""
    file = folder / "xctrace.json"
    file.write_text(json.dumps({"log": str(folder / "xctrace.calls"), **scenario}))
    return Instruments(folder, {"PROFKIT_XCTRACE": str(XCTRACE), "XCTRACE_SCENARIO": str(file)})


def mac_path() -> str:
    """A PATH on which xcrun is the stand-in."""
    return f"{STAND_INS}{os.pathsep}{os.environ['PATH']}"
