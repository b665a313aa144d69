"""The run on CUDA: first where the time goes (nsys), then why (ncu), with as few replays as possible."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cuda.counter_passes import ExplanationPass, KernelCountersPass
from profkit.backends.cuda.process_rows import lines_of, memory_of, of_rows, said_by_processes
from profkit.backends.cuda.trace_pass import EXPORT_SECONDS, NSYS_SECONDS, DeviceTracePass
from profkit.backends.passes import (
    ALL_PASSES,
    BackendRun,
    Pass,
    PassTable,
    StacksPass,
    first_mention,
    plain_runs,
)
from profkit.core.errors import Fault, UnreadableReport
from profkit.core.process import status_wrapper
from profkit.core.tables import judge_rows
from profkit.core.types import (
    Check,
    Depth,
    Fact,
    Gpu,
    Hotspot,
    PassName,
    PassPlan,
    PassResult,
    Profile,
    ProfileKind,
    Switch,
)
from profkit.hardware.nvidia import driver_fault, read_gpus
from profkit.profilers.chrome.jax_lines import COMPILED_AGAIN
from profkit.profilers.ncu.probe import NcuAbility, judge_ncu, probe_ncu
from profkit.profilers.nsys.command import export_argv, nsys_argv
from profkit.profilers.nsys.probe import judge_nsys, probe_nsys
from profkit.profilers.programs import ToolAbility
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.command import has_module
from profkit.runtime.passes.host.operation_lines import VARIABLE

# Triton's autotuner runs every candidate thousands of times. With this it keeps what it found on the disk: the first
# pass tunes, and all later ones launch what that one launched, on which the plan of the counters builds.
TUNED_ONCE = {"TRITON_CACHE_AUTOTUNING": "1"}
# What it keeps it writes as JSON, and it raises where a kernel is tuned for something else: for a dtype, say.


_IMPORTS_JAX = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:jax|flax|optax|equinox|haiku|numpyro|brax)\b", re.MULTILINE
)


class CudaRun(BackendRun):
    """The passes for one workload and its devices."""

    name = "cuda"
    passes: ClassVar[PassTable] = {
        "quick": ("timing", "trace"),
        "gate": ("timing", "trace", "counters"),
        "standard": ("timing", "trace", "stacks", "counters", "explain"),
        "full": (*ALL_PASSES, "explain"),
    }
    # Processes of the same work on a GPU differ by less than its clocks do within one.
    processes: ClassVar[Mapping[Depth, int]] = {"quick": 1, "gate": 1, "standard": 1, "full": 3}
    switch = Switch("cuda")
    on_device = True
    # the stacks once it is known whether nsys works: with them the first answer is known
    order = ("timing", "trace", "stacks", "counters", "explain", "cprofile", "tracemalloc")

    def tool_versions(self) -> dict[str, str | None]:
        """Return the versions of nsys and ncu, where they are used."""
        versions: dict[str, str | None] = {}
        if "trace" in self.wanted:
            versions["nsys"] = self._nsys.version
        if "counters" in self.wanted or "explain" in self.wanted:
            versions["ncu"] = self._ncu.version
        return versions

    def plans_of(self, each: Pass, state: PlanState) -> list[PassPlan]:
        """Return the tries of a pass, in which Triton tunes once."""
        return [_tuned_once(planned) for planned in super().plans_of(each, state)]

    def after_failure(self, message: str) -> PassPlan | None:
        """Return a run with the stacks of allocations, where the device's memory was full."""
        if "out of memory" not in message.lower() or "stacks" not in self.wanted or not self._has("torch"):
            return None
        (plan,) = StacksPass(self.context).plan(PlanState(marked=False))
        steps = tuple(replace(step, env={**step.env, VARIABLE: "1"}) for step in plan.steps[:1])
        return replace(plan, steps=steps) if steps else None

    def make_pass(self, name: PassName) -> Pass | None:
        """Make the trace, the counters of its kernels, and what explains those that missed a target."""
        chip = self.gpus[0].chip or self.gpus[0].capability if self.gpus else None
        if name == "trace":
            return DeviceTracePass(self.context, self._nsys, ranges=self._has("nvtx"), jax=self._uses_jax())
        if name == "counters":
            return KernelCountersPass(self.context, self._ncu, chip, jax=self._uses_jax())
        if name == "explain":
            return ExplanationPass(self.context, self._ncu, chip, jax=self._uses_jax())
        if name == "stacks":
            traced = "trace" in self.wanted and self._nsys.works and self._has("torch")
            return TracedStacksPass(self.context, self._nsys.path if traced else None)
        return super().make_pass(name)

    @cached_property
    def _probed(self) -> tuple[ToolAbility, NcuAbility]:
        """Return what both tools can do, probed in parallel, since this precedes every run.

        nsys is not tried: a trace that fails is made once more by torch's profiler.
        """
        with ThreadPoolExecutor(max_workers=2) as pool:
            nsys, ncu = pool.submit(probe_nsys, trial=False), pool.submit(probe_ncu)
            return nsys.result(), ncu.result()

    @property
    def _nsys(self) -> ToolAbility:
        """Return what nsys can do."""
        return self._probed[0]

    @property
    def _ncu(self) -> NcuAbility:
        """Return what ncu can do."""
        return self._probed[1]

    def _uses_jax(self) -> bool:
        """Return whether the program's text imports JAX, or a library on top of it, and its Python has JAX."""
        return first_mention(self.context.workload, _IMPORTS_JAX) is not None and self._has("jax")

    def _has(self, module: str) -> bool:
        """Return whether the workload's Python can import a module: nvtx to write ranges, torch to call."""
        workload = self.context.workload
        return workload.python is not None and has_module(workload.python, module, workload.folder)


def _tuned_once(planned: PassPlan) -> PassPlan:
    """Return the pass with steps in which Triton tunes nothing again; what the user set stays."""
    env = {name: value for name, value in TUNED_ONCE.items() if name not in os.environ}
    return replace(planned, steps=tuple(replace(step, env={**env, **step.env}) for step in planned.steps))


# ------------------------------------------------------------ which line launched each kernel

# Recorded by nsys beside the sampled stacks, not in the trace: to write each operation as an NVTX range costs the host
# 2.9 us. A step of a GPT that keeps an H100 busy for 95 % of 25.4 ms took 33 ms so, and the GPU seemed to wait for its
# host for a quarter of it. In the process whose stacks are sampled no time of the device counts.

_LEFT = ("stacks.jsonl.operations", "operations.nsys-rep", "operations.sqlite")
SWITCHED_OFF, REPORT, EXPORT = (f"artifacts/{name}" for name in _LEFT)


class TracedStacksPass(StacksPass):
    """The sampled stacks, once nsys is known to work: traced by nsys, with a range for each call into torch."""

    leaves: ClassVar[tuple[str, ...]] = (*StacksPass.leaves, *_LEFT)

    def __init__(self, context: RunContext, nsys: Path | None) -> None:
        super().__init__(context)
        self._nsys = nsys

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan the stacks under nsys, or alone where nsys is known to take no NVTX ranges or torch is missing."""
        (plan,) = super().plan(state)
        traces = [result for result in state.passes if result.name == "trace"]
        fine = all(result.tool == "nsys" and result.state == "finished" for result in traces)
        if self._nsys is None or not fine or plan.skipped is not None:
            return [plan]
        (step,), nsys, folder = plan.steps, str(self._nsys), self.context.folder
        status = self.folder / f"{step.name}.status"
        traced = replace(
            step,
            argv=nsys_argv(status_wrapper(step.argv, status), folder / REPORT, marked=False, nsys=nsys),
            artifacts=(*step.artifacts, REPORT, EXPORT),
            env={**step.env, VARIABLE: "1"},
            tool="nsys",
            workload_status=str(status),
            after=(export_argv(folder / REPORT, folder / EXPORT, nsys=nsys),),
        )
        more = plain_runs(NSYS_SECONDS + EXPORT_SECONDS, state)
        note = Fact("nsys-tells-launchers")
        return [replace(plan, steps=(traced,), cost=(plan.cost or 0.0) + more, notes=(*plan.notes, note))]

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """Read the stacks, and what launched each kernel where nsys recorded it; its times are not used."""
        return add_launchers(super().read(plan, result), self.context.folder)


def add_launchers(findings: PassFindings, folder: Path) -> PassFindings:
    """Add to the findings what launched each kernel, where nsys recorded it; its times are not used."""
    said = said_by_processes(folder / SWITCHED_OFF)
    why = [(line["reason"], str(line.get("said"))) for line in said if isinstance(line.get("reason"), str)]
    reasons = [Fact.of(code, said=text) for code, text in why]
    notes = (*findings.notes, *(Fact.of("launchers-of-a-part", reason) for reason in dict.fromkeys(reasons)))
    # Of what JAX compiles again the stacks of any backend have the profile already.
    there = any(profile.kind == "recompilations" for profile in findings.profiles)
    kinds = [kind for kind in _KINDS if not (there and kind[0] == "jax")]
    profiles = (*findings.profiles, *(found for kind in kinds if (found := _said_profile(said, *kind))))
    memory = (*findings.memory, *memory_of(said))
    findings = replace(findings, notes=notes, profiles=profiles, memory=memory, kernel_lines=lines_of(said))
    path = folder / EXPORT
    if not path.is_file():
        return findings
    try:
        report = recognise_format(path).read(path)
    except UnreadableReport as error:
        return replace(findings, notes=(*notes, Fact.of("no-launchers", said=error.message)))
    return replace(findings, launched=report.trace)


def _growing(file: Any, line: Any, function: Any, *counts: Any) -> Hotspot:
    """Return a line whose tensors stay on the device."""
    looks, begin, first, end, last, blocks = map(float, counts)
    known = {"looks": looks, "begin": begin, "end": end, "first": first, "device": 1.0}
    return Hotspot(str(function), last - first, last, int(blocks), str(file), int(line), counters=known)


def _held(
    file: Any, line: Any, function: Any, size: Any, blocks: Any, requested: Any, reserved: Any
) -> Hotspot:
    """Return a line that held memory of the device when that was full; without a line, the backward pass."""
    known = {"asked": float(requested), "reserved": float(reserved)}
    place, number = (str(file), int(line)) if file else (None, None)
    return Hotspot(str(function), float(size), None, int(blocks), place, number, counters=known)


def _check(name: Any, file: Any, line: Any, function: Any) -> Hotspot:
    """Return a debugging switch that is on, and the line that set it."""
    return Hotspot(str(function), 1.0, None, 1, str(file) or None, int(line) or None, str(name))


def _compiled_again(file: Any, line: Any, function: Any, reason: Any, count: Any, *each: Any) -> Hotspot:
    """Return a function that was compiled again, the first reason, and the seconds that it took."""
    took = float(count * sum(each))
    return Hotspot(str(function), float(count), took, int(count), str(file), int(line), str(reason))


def _compiled_by_jax(*row: Any) -> Hotspot:
    """Return a function that JAX compiled again, by its name, and the seconds that it took."""
    return replace(_compiled_again(*row), counters={"jax": 1.0})


def _compiled_by_triton(*row: Any) -> Hotspot:
    """Return a line at which Triton compiled a kernel again, what differed, and the seconds that it took."""
    return replace(_compiled_again(*row), counters={"triton": 1.0})


def _tuned(file: Any, line: Any, name: Any, keys: Any, configurations: Any) -> Hotspot:
    """Return a kernel that Triton tuned, with its number of keys."""
    known = {"configurations": float(configurations)}
    return Hotspot(str(name), float(keys), None, int(keys), str(file), int(line), counters=known)


def _widened(file: Any, line: Any, name: Any, type_: Any, exact: Any = False) -> Hotspot:
    """Return a product in a Triton kernel whose operands were made float32, with their type in memory.

    Or, with `exact`, one that asks for the digits of float32.
    """
    known = {"exact": 1.0} if exact else {}
    return Hotspot(str(name), 1.0, None, 1, str(file), int(line), str(type_) or None, counters=known)


def _padded(file: Any, line: Any, function: Any, looks: Any, columns: Any, unused: Any) -> Hotspot:
    """Return a line that brings matrices to the device whose last columns are padding in all rows."""
    return Hotspot(str(function), float(unused), float(columns), int(looks), str(file), int(line))


def _repeated(
    file: Any, line: Any, function: Any, name: Any, calls: Any, again: Any, all_calls: Any, all_again: Any
) -> Hotspot:
    """Return a line of whose large results most were there before, and the function of torch that makes them."""
    known = {"all calls": float(all_calls), "all again": float(all_again)}
    return Hotspot(
        str(function), float(again), None, int(calls), str(file), int(line), str(name), counters=known
    )


def _copied(file: Any, line: Any, function: Any, module: Any, argument: Any, size: Any) -> Hotspot:
    """Return an argument that a program of XLA copies whole, at the line that changes it; without one, nowhere."""
    of = f"{module} {argument}"
    if not file:
        return Hotspot(str(function), float(size), None, 1, library=of)
    return Hotspot(str(function), float(size), None, 1, str(file), int(line), of)


def _broken(file: Any, line: Any, reason: Any, whole: Any, count: Any) -> Hotspot:
    """Return where torch.compile left a function, and why."""
    known = {"whole": float(whole)}
    return Hotspot(str(reason), float(count), None, int(count), str(file), int(line), counters=known)


# what a process says, what a row of it is, and the profile of all rows: title, unit and kind
_KINDS: tuple[tuple[str, Callable[..., Hotspot], str, str, ProfileKind], ...] = (
    ("memory", _growing, "lines whose tensors stay on the device", "B", "growing-lines"),
    ("breaks", _broken, "graph breaks", "count", "graph-breaks"),
    ("full", _held, "lines that held the device's memory when it was full", "B", "held-lines"),
    ("checks", _check, "switches for debugging", "count", "debug-checks"),
    ("recompiles", _compiled_again, "compiled again", "count", "recompilations"),
    ("again", _repeated, "large results that came again", "count", "repeated-results"),
    ("padding", _padded, "padding brought to the device", "count", "padded-batches"),
    ("tuned", _tuned, "tuned by Triton", "count", "tuned-kernels"),
    ("widened", _widened, "products of widened operands", "count", "widened-products"),
    ("copied", _copied, "arguments that XLA copies", "B", "copied-arguments"),
    ("triton", _compiled_by_triton, "compiled again by Triton", "count", "recompilations"),
    ("jax", _compiled_by_jax, COMPILED_AGAIN, "count", "recompilations"),
)


def _said_profile(
    said: Sequence[Mapping[str, Any]],
    key: str,
    spot: Callable[..., Hotspot],
    title: str,
    unit: str,
    kind: ProfileKind,
) -> Profile | None:
    """Return the profile of one kind of rows; None where no process wrote any."""
    spots = sorted(of_rows(said, key, spot), key=lambda hotspot: -hotspot.own)
    return Profile(title, unit, sum(hotspot.own for hotspot in spots), tuple(spots), kind) if spots else None


CUDA_PASSES: tuple[type[Pass], ...] = (
    DeviceTracePass,
    TracedStacksPass,
    KernelCountersPass,
    ExplanationPass,
)

# ------------------------------------------------------------ the doctor's checks

GIB = 1 << 30
_CHECKS = Path(__file__).with_name("checks.yaml")


def nvtx_checks() -> Iterator[Check]:
    """Return a check where profkit's Python has no nvtx; a workload may use another Python."""
    installed = importlib.util.find_spec("nvtx") is not None
    return judge_rows(_CHECKS, "nvtx", {"installed": installed, "python": sys.executable})


def cuda_checks() -> Iterator[Check]:
    """Check the device first: without one there is a single check that says so, and nothing is started."""
    gpus = read_gpus()
    if not gpus:
        yield from device_missing(driver_fault())
        return
    yield from judge_cuda(gpus, probe_ncu(), probe_nsys())


def device_missing(fault: Fault | None) -> Iterator[Check]:
    """Return the check for a machine without a GPU, which also says what can be done on it."""
    return judge_rows(_CHECKS, "no device", fault or Fault("no CUDA device is visible", "--backend cpu"))


def judge_cuda(gpus: Sequence[Gpu], ncu: NcuAbility, nsys: ToolAbility) -> Iterator[Check]:
    """Yield what devices and probes mean for a run, check by check."""
    yield from judge_rows(_CHECKS, "backend", {"traces": nsys.works, "counts": ncu.works})
    for gpu in gpus:
        yield from judge_rows(_CHECKS, "device", gpu, {"about": _describe_gpu(gpu)})
    yield from judge_ncu(ncu)
    yield from judge_nsys(nsys)
    yield from nvtx_checks()


def _describe_gpu(gpu: Gpu) -> str:
    """Return chip, capability, memory and driver of a GPU in parentheses."""
    parts = [
        gpu.chip,
        f"compute capability {gpu.capability}" if gpu.capability else None,
        f"{gpu.memory_bytes / GIB:.0f} GiB" if gpu.memory_bytes else None,
        f"driver {gpu.driver}" if gpu.driver else None,
    ]
    about = ", ".join(part for part in parts if part)
    return f" ({about})" if about else ""
