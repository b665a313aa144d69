"""Run one workload from its command line to its timing; every script here calls this.

arguments -> engine (device, library) -> inputs -> one checked iteration -> profkit.benchmark
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path

from benchmark.arguments import Request, parse
from benchmark.check import compare
from benchmark.choice import choose
from benchmark.engines import Engine
from benchmark.measure import keep, measure, need_profkit, profiled
from benchmark.refusal import MACHINE, USAGE, Refusal
from benchmark.workload import DTYPES, Workload


def main(kind: type[Workload], argv: Sequence[str] | None = None) -> int:
    """Run a workload as a script and return the exit code. Prints one sentence if it cannot run."""
    # a profiler may run the script as a module that it creates, without a file
    script = Path(getattr(sys.modules.get(kind.__module__), "__file__", None) or sys.argv[0])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal can show the symbols of a formula
    try:
        _run(kind, parse(kind, _as_typed(script), argv))
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return refusal.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _run(kind: type[Workload], request: Request) -> None:
    engine, impl, remarks = choose(request, kind.implementations)
    workload = _sized(kind, request, engine)
    need_profkit()
    _need_memory(workload, engine)
    print(
        f"{workload.name} ({impl}): {engine.library} on {engine.backend}, {engine.dtype}, {_sizes(workload)}"
    )
    if profiled() and (request.warmup is not None or request.iters is not None):
        remarks.append("--warmup and --iters are for runs by hand: the pass decides")
    for remark in remarks:
        print(f"  {remark}")
        keep(remark)  # under profkit this output goes to a log that users need not read
    try:
        with engine.computing():
            inputs = workload.inputs(engine.draw)
            step = getattr(workload, impl)(*inputs)
            result = engine.exact(step())
            print(
                "  " + compare(workload, engine.dtype, tuple(map(engine.exact, inputs)), result), flush=True
            )
            del result
            measure(
                step,
                engine.wait,
                device=engine.backend,
                name=workload.name,
                flops=workload.flops(),
                bytes=workload.bytes(DTYPES[engine.dtype].itemsize),
                warmup=request.warmup,
                iters=request.iters,
            )
    except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError with these words
        if isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate" in str(error):
            raise Refusal(MACHINE, f"{_needs(workload, engine)}, and there was not enough memory") from error
        raise


def _sized(kind: type[Workload], request: Request, engine: Engine) -> Workload:
    workload = kind.sized(request.sizes, gpu=engine.backend != "cpu")
    if (fault := workload.fault()) is not None:
        raise Refusal(USAGE, fault)
    return workload


def _sizes(workload: Workload) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asdict(workload).items())


def _need_memory(workload: Workload, engine: Engine) -> None:
    memory = engine.memory()
    if memory is not None and workload.bytes(DTYPES[engine.dtype].itemsize) > memory:
        raise Refusal(
            MACHINE, f"{_needs(workload, engine)}, more than the {memory / 1e9:,.1f} GB of memory here"
        )


def _needs(workload: Workload, engine: Engine) -> str:
    return f"inputs and output take {workload.bytes(DTYPES[engine.dtype].itemsize) / 1e9:,.1f} GB"


def _as_typed(script: Path) -> str:
    """Return the script's path relative to the project's root, for the help."""
    root = Path(__file__).resolve().parents[1]
    return (
        script.resolve().relative_to(root).as_posix()
        if script.resolve().is_relative_to(root)
        else script.name
    )
