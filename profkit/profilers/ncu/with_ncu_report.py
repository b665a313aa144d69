"""Reads .ncu-rep files with NVIDIA's own package `ncu_report`: a second way to the same launches and values.

It opens what the own reader refuses (compressed .ncu-repz, formats to come). It tells nothing of the session, and takes
seconds where `rep` takes fractions of one, so it is asked where the own reader cannot, and by tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from profkit.core.errors import MachineError, UnreadableReport
from profkit.core.types import Report
from profkit.profilers.ncu.launches import IDENTITY, Launch, NvtxRange, ResultKind, Value, finite, kernel_of
from profkit.profilers.ncu.report import report_of
from profkit.profilers.ncu.session import Session
from profkit.profilers.ncu.wanted import is_wanted

_ATTRIBUTE = "device__attribute_"
_KINDS: dict[str, ResultKind] = {"RANGE": "range", "CMDLIST": "cmdlist", "GRAPH": "graph"}
_NAMES: dict[ResultKind, str] = {"range": "range", "cmdlist": "command list", "graph": "CUDA graph"}


def available() -> bool:
    """Whether NVIDIA's package is installed."""
    return find_spec("ncu_report") is not None


def read_with_ncu_report(path: Path) -> Report:
    """As `rep.read_ncu_rep`, without the facts that the package does not tell.

    Raises UnreadableReport, and MachineError where the package is not installed.
    """
    session = Session()
    actions = _actions(path)
    return report_of(session, _launches(actions, is_wanted, session), "ncu-rep")


def read_launches(
    path: Path, wanted: Collection[str] | Callable[[str], bool] | None = None
) -> tuple[Launch, ...]:
    """As `rep.read_launches`. Raises UnreadableReport, and MachineError where the package is not installed."""
    if wanted is None or callable(wanted):
        ask = wanted or (lambda _: True)
    else:
        ask = frozenset(wanted).__contains__
    return tuple(_launches(_actions(path), ask, Session()))


def _actions(path: Path) -> tuple[Any, ...]:
    if not available():
        raise MachineError("NVIDIA's package ncu_report is not installed", "pip install ncu-report")
    if not path.is_file():
        raise UnreadableReport(f"{path} does not exist or is no file")
    package = import_module("ncu_report")
    try:
        context = package.load_report(str(path))
        # A file that it cannot read is one without ranges to it.
        ranges = context.num_ranges() if context is not None else 0
        actions = tuple(action for number in range(ranges) for action in context.range_by_idx(number))
    except (RuntimeError, ValueError, TypeError, OSError) as error:
        raise UnreadableReport(f"{path} is no report that NVIDIA's ncu_report opens: {error}") from error
    if not ranges:
        raise UnreadableReport(f"{path} holds no result that NVIDIA's ncu_report finds")
    return actions


def _launches(actions: tuple[Any, ...], wanted: Callable[[str], bool], session: Session) -> Iterator[Launch]:
    for action in actions:
        values: dict[str, Value] = {}
        device: dict[str, Value] = {}
        for name in action.metric_names():
            if name.startswith(_ATTRIBUTE):
                device[name.removeprefix(_ATTRIBUTE)] = _value(action, name)
            if name in IDENTITY or wanted(name):
                values[name] = _value(action, name)
        index = finite(values.get("launch__device_id"))
        shown = device.get("display_name")
        session.devices.setdefault(int(index or 0), (shown if isinstance(shown, str) else "", device))
        yield _launch(action, values, None if index is None else int(index))


def _launch(action: Any, values: dict[str, Value], device: int | None) -> Launch:
    kind = _kind(action)
    ranges = _ranges(action)
    name = action.name(action.NameBase_DEMANGLED) or action.name(action.NameBase_FUNCTION)
    mangled: str | None = action.name(action.NameBase_MANGLED) or None
    if kind != "kernel":
        mangled = None
        if name in ("", "range", "graph", "cmdlist"):
            name = ranges[-1].name if ranges and kind == "range" else _NAMES[kind]
    sides = [
        tuple(
            int(side)
            for axis in "xyz"
            if (side := finite(values.get(f"launch__{what}_dim_{axis}"))) is not None
        )
        for what in ("grid", "block")
    ]
    grid, block = sides if kind == "kernel" else ((), ())
    return Launch(
        kernel=kernel_of(str(name), mangled, grid, block, values),
        values=values,
        kind=kind,
        device=device,
        ranges=ranges,
    )


def _kind(action: Any) -> ResultKind:
    told = action.workload_type()
    for word, kind in _KINDS.items():
        if told == getattr(action, f"WorkloadType_{word}", None):
            return kind
    return "kernel"


def _value(action: Any, name: str) -> Value:
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_value():
        return None
    value: Value = metric.value()
    return value


def _ranges(action: Any) -> tuple[NvtxRange, ...]:
    state = action.nvtx_state()
    if state is None:
        return ()
    found: dict[NvtxRange, None] = {}
    for starts in ("push_pop_ranges", "start_end_ranges"):
        for id_ in state.domains():
            domain = state.domain_by_id(id_)
            said = domain.name()
            shown = None if not said or said.startswith("<default") else said
            found |= dict.fromkeys(NvtxRange(name, shown) for name in getattr(domain, starts)() if name)
    return tuple(found)
