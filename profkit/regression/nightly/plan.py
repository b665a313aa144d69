"""What a night would do, and what it may cost: nothing is run and nothing written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profkit.core.codec import plain
from profkit.core.errors import ProfkitError
from profkit.core.types import NightPlan, PlannedWorkload
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.nightly.profile_process import plan_once
from profkit.regression.nightly.session import NightState, read_state

PLAN_SCHEMA = "profkit.night-plan/1"
LOOKED = 30  # nights back that are asked how long a workload took


def plan_night(config: NightConfig, specs: Sequence[WorkloadSpec], nights: Path) -> NightPlan:
    """The night as it would be; a workload that cannot be planned says why and costs the others nothing."""
    past = _recent_states(nights)
    confirm = config.confirm.budget if config.confirm.enabled else 0.0
    calibrate = config.calibrate.budget * min(config.calibrate.workloads, len(specs))
    planned = tuple(_plan_workload(spec, past) for spec in specs)
    most = sum(w.most for w in planned) + confirm * len(planned) + calibrate
    usual = [w.usual for w in planned if w.usual is not None]
    return NightPlan(
        name=config.name,
        history=str(config.history),
        output=str(nights),
        workloads=planned,
        confirm=confirm,
        calibrate=calibrate,
        usual=sum(usual) if len(usual) == len(planned) else None,
        most=most if config.budget is None else min(most, config.budget),
    )


def _plan_workload(spec: WorkloadSpec, past: Sequence[NightState]) -> PlannedWorkload:
    usual = next((s.done[spec.name].seconds for s in past if s.done.get(spec.name) is not None), None)
    document, fault = plan_once(spec)
    told = [
        one
        for one in _list_or_empty(document.get("passes"))
        if isinstance(one, dict) and not one.get("skipped")
    ]
    costs = [one.get("cost") for one in told]
    numbers = [float(cost) for cost in costs if isinstance(cost, (int, float))]
    return PlannedWorkload(
        name=spec.name,
        command=spec.command,
        cwd=str(spec.cwd),
        backend=str(document.get("backend") or spec.backend),
        passes=tuple(dict.fromkeys(str(one.get("name")) for one in told)),
        gates=spec.declared,
        usual=usual,
        most=spec.budget,
        runs=sum(numbers) if numbers and len(numbers) == len(costs) else None,
        reason=fault.reason if fault is not None else None,
        fix=fault.fix if fault is not None else None,
    )


def plan_to_text(plan: NightPlan) -> str:
    """As one JSON document, schema `profkit.night-plan/1`."""
    body = plain(plan)
    assert isinstance(body, dict)
    return json.dumps({"schema": PLAN_SCHEMA, **body}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _recent_states(nights: Path) -> list[NightState]:
    """The last nights, the newest first; what cannot be read is passed over."""
    found = []
    with contextlib.suppress(OSError):
        for folder in sorted(nights.iterdir(), key=lambda p: p.name, reverse=True)[:LOOKED]:
            with contextlib.suppress(ProfkitError):
                state = read_state(folder)
                found += [state] if state is not None else []
    return found
