"""The story of one run: a workload is carried through the house, and leaves it judged.

Every step is written to run.json before the next begins, so that a run which dies at any moment can still be read.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import cast, get_args

from profkit.analysis.targets import Target, load_targets
from profkit.backends import BackendRoom, Known, Site
from profkit.core.errors import Interrupted, MachineError, ProfkitError, UsageError
from profkit.core.progress import Progress
from profkit.core.run_folder import create_run_folder, hand_over, release_space, reserve_space, write_run
from profkit.core.signals import hurried, interruptible
from profkit.core.types import Backend, Depth, Gpu, PassName, Plan, RunDocument, RunState, Workload
from profkit.hardware.machine import read_machine
from profkit.profiling.evaluate_targets import judge_document
from profkit.profiling.live_run import LiveRun
from profkit.profiling.recording.step import require_space
from profkit.profiling.workload import describe, seems_gpu, seems_marked, seems_mps
from profkit.reporting import markdown
from profkit.reporting.html.write import write_page
from profkit.reporting.views import run as run_view

PASSES = get_args(PassName)
# Wall seconds for warm-up and samples in one process, where the user names none.
BUDGETS: dict[Depth, float] = {"gate": 5.0, "standard": 8.0, "full": 30.0}
# On a GPU a kernel's time is known to ±1 % within a second, or its clocks vary for as long as one looks.
GPU_BUDGETS: dict[Depth, float] = {"gate": 1.0, "standard": 3.0, "full": 20.0}


@dataclass(frozen=True)
class Request:
    """What the user asked for. `precision` is a share (0.01 is ±1 %), `timeout` and `budget` wall seconds."""

    command: tuple[str, ...]
    backend: str = "auto"
    passes: tuple[str, ...] | None = None
    depth: str = "standard"
    targets: Path | None = None
    output: Path = Path("reports")
    name: str | None = None
    timeout: float | None = None
    precision: float = 0.01
    budget: float | None = None
    cold: bool = False  # on a device: time each call with its L2 flushed


def make_plan(request: Request) -> Plan:
    """What a run would do, as far as can be known before anything ran. Runs nothing of the workload."""
    _check(request)
    workload = describe(request.command, request.name)
    choice = _choose(request, workload)
    site = _site(request, request.output / "RUN", workload, choice)
    return _room(choice, site).plan(Known(marked=seems_marked(workload)))


def profile_workload(request: Request, progress: Progress) -> tuple[RunDocument, Path]:
    """Carry the workload through every pass; the judged run and its folder.

    Raises UsageError and MachineError before anything ran, and WorkloadError when the workload fails by itself. What is
    raised later leaves a run that says so, and names it (`run`). An interrupted run is returned with that state.
    """
    _check(request)
    workload = describe(request.command, request.name)
    choice = _choose(request, workload)
    site = _site(request, request.output, workload, choice)
    if choice.why is not None:
        progress.note(choice.why)
    targets = load_targets(choice.name, request.targets, site.workload.name)  # before an hour is spent
    state: RunState = "complete"
    with interruptible(), contextlib.ExitStack() as last:
        with hurried() as hurry:  # there is no folder without a run.json
            folder = create_run_folder(
                request.output, site.workload.name, choice.name, datetime.now()
            ).resolve()
            last.callback(hand_over, folder)
            site = replace(site, folder=folder)
            live = LiveRun(
                site, _room(choice, site), request.timeout, progress, lambda d: judge_document(d, targets)
            )
            live.grow(notes=(choice.why,) if choice.why is not None else ())
        try:
            if hurry.is_set():
                raise KeyboardInterrupt
            require_space(folder)
            reserve_space(folder)
            live.carry_out()
        except (KeyboardInterrupt, Interrupted):
            state = "interrupted"
        except ProfkitError as fault:
            progress.end("failed")
            release_space(folder)
            _tell_failure(live, folder, targets, fault.message)
            fault.message += f"\n(run: {_short(folder)})"
            fault.run = folder
            raise
        except Exception as error:  # no folder stays "running" when nothing runs any more
            release_space(folder)
            _tell_failure(live, folder, targets, f"{type(error).__name__}: {error}")
            raise
        with hurried() as hurry:  # all is measured: a Ctrl-C now must not cost the judgement
            if state == "interrupted":
                progress.end("interrupted; what was finished is kept")
            release_space(folder)
            document = replace(judge_document(live.document, targets), state=state)
            folder = Path(_short(folder))
            if (why := _tell(document, folder)) is not None:
                progress.note(f"no report.html: {why}")
    if hurry.is_set() and state == "complete":
        late = Interrupted(f"interrupted when all was measured\n(run: {folder})")
        late.run = folder
        raise late
    return document, folder


def _tell(document: RunDocument, folder: Path) -> str | None:
    """Write run.json and the reports beside it; why there is no report.html, or None. Raises MachineError."""
    write_run(folder, document)
    _write_text(folder / "report.md", markdown.render(run_view.view(document)))
    return write_page(folder, document)


def _tell_failure(live: LiveRun, folder: Path, targets: Sequence[Target], failure: str) -> None:
    """Leave in the folder that the run failed, and what was finished before as reports. Raises nothing.

    The folder may be what failed, and a Ctrl-C must not cost the reason: what is on its way stays what is told.
    """
    with hurried():
        with contextlib.suppress(Exception, KeyboardInterrupt):  # first what needs no judgement
            live.grow(state="failed", failure=failure)
        document = replace(live.document, state="failed", failure=failure)
        with contextlib.suppress(Exception):  # a report without verdicts is worth more than none
            document = judge_document(document, targets)
        with contextlib.suppress(Exception):
            _tell(document, folder)


def _check(request: Request) -> None:
    """Raise UsageError for options that make no sense, before anything is looked at."""
    unknown = [name for name in request.passes or () if name not in PASSES]
    if unknown:
        raise UsageError(f"there is no pass called {unknown[0]!r}", f"--passes {','.join(PASSES)}")
    if request.passes is not None and not request.passes:
        raise UsageError("--passes names no pass", f"--passes {','.join(PASSES)}")
    if not 0.0001 <= request.precision <= 0.5:
        raise UsageError(
            f"a precision of {request.precision} is not between 0.0001 and 0.5", "--precision 0.01"
        )
    for option, value in (("--timeout", request.timeout), ("--budget", request.budget)):
        if value is not None and not value > 0:
            raise UsageError(f"{option} {value} is not a time in seconds")


def _site(request: Request, folder: Path, workload: Workload, choice: _Choice) -> Site:
    depth = cast(Depth, request.depth)
    budgets = BUDGETS if choice.name == "cpu" else GPU_BUDGETS
    return Site(
        workload=workload,
        machine=read_machine(),
        folder=folder.absolute(),
        depth=depth,
        wanted=request.passes,
        precision=request.precision,
        budget=request.budget if request.budget is not None else budgets[depth],
        cold=request.cold,
        timeout=request.timeout,
    )


@dataclass(frozen=True)
class _Choice:
    """The backend of a run, its devices, and why it was taken where that was left to profkit."""

    name: Backend
    gpus: tuple[Gpu, ...] = ()
    why: str | None = None


def _choose(request: Request, workload: Workload) -> _Choice:
    """The backend asked for; with `auto` cuda or mps where a device is here that the workload seems to use, else cpu.

    Raises MachineError where the one that was asked for cannot be profiled here.
    """
    choice = _find(request, workload)
    if request.cold and choice.name == "cpu":
        gpu = "mps" if platform.system() == "Darwin" else "cuda"
        raise UsageError("--cold flushes the L2 of a GPU, and this run is on the CPU", f"--backend {gpu}")
    return choice


def _find(request: Request, workload: Workload) -> _Choice:
    if request.backend == "cpu":
        return _Choice("cpu")
    if request.backend == "mps":
        return _mps()
    if request.backend == "auto" and platform.system() == "Darwin":
        return _auto_on_macos(workload)
    from profkit.hardware import gpu as hardware_gpu  # a run on the CPU asks no driver

    if request.backend == "auto":
        from_workload = seems_gpu(workload)
        if from_workload is None:
            return _Choice("cpu")
        gpus = hardware_gpu.read_gpus()
        if not gpus:
            fault = hardware_gpu.driver_fault()
            missing = fault.reason if fault is not None else "no CUDA device is visible"
            return _Choice("cpu", why=f"backend cpu: {from_workload}, but {missing}")
        return _Choice("cuda", gpus, f"backend cuda: {from_workload} (--backend cpu profiles the host)")
    gpus = hardware_gpu.read_gpus()
    if gpus:
        return _Choice("cuda", gpus)
    fault = hardware_gpu.driver_fault()
    reason = fault.reason if fault is not None else "no device is visible"
    raise MachineError(
        f"--backend cuda: {reason}", (fault.fix if fault is not None else None) or "--backend cpu"
    )


def _mps() -> _Choice:
    """The backend mps with the GPUs of this Mac. Raises MachineError elsewhere."""
    system = platform.system()
    if system != "Darwin":
        raise MachineError(
            f"--backend mps: Metal exists only on macOS, and this is {system or 'another system'}",
            "record on a Mac (wrappers/xctrace.sh), bring the exported tables, then: profkit summarize FOLDER",
        )
    from profkit.hardware.apple_gpu import read_apple_gpus

    return _Choice("mps", read_apple_gpus())


def _auto_on_macos(workload: Workload) -> _Choice:
    """mps where the workload seems to use it and this is Apple silicon, whose GPU torch and mlx use; else cpu."""
    from_workload = seems_mps(workload)
    if from_workload is None:
        return _Choice("cpu")
    choice = _mps()
    if not any(gpu.name.startswith("Apple") for gpu in choice.gpus):
        return _Choice("cpu", why=f"backend cpu: {from_workload}, but this Mac has no GPU of Apple's")
    return replace(choice, why=f"backend mps: {from_workload} (--backend cpu profiles the host)")


def _room(choice: _Choice, site: Site) -> BackendRoom:
    if choice.name == "cuda":
        from profkit.backends.cuda import Cuda

        return Cuda(site, choice.gpus)
    if choice.name == "mps":
        from profkit.backends.mps import Mps

        return Mps(site, choice.gpus)
    from profkit.backends.cpu import Cpu

    return Cpu(site)


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror}", "--output FOLDER") from error


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or in a folder that is gone by now
        return str(path)
