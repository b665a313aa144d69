"""Counters without a PMU: callgrind simulates caches and branches of the region.

Two simulations cover three cache levels.
"""

from __future__ import annotations

import math
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.passes import Pass, divide_counters, divide_profile, read_region_work
from profkit.backends.source_lines import address_of, program_file, source_of_addresses
from profkit.core.errors import UnreadableReport
from profkit.core.types import (
    Cache,
    Counter,
    Fact,
    Hotspot,
    PassPlan,
    PassResult,
    Place,
    Profile,
    Reading,
    Report,
    Step,
    Switch,
    together,
)
from profkit.hardware.machine import data_cache, instruction_cache
from profkit.profilers.valgrind.command import (
    COST,
    callgrind_argv,
    callgrind_outputs,
    changed_geometries,
    is_followed,
    single_thread_env,
)
from profkit.profilers.valgrind.instructions import instruction_mix
from profkit.profilers.valgrind.levels import FROM_L2_RUN, combine_levels
from profkit.profilers.valgrind.loops import loops_of
from profkit.profilers.valgrind.probe import ValgrindAbility
from profkit.profilers.valgrind.read import read_callgrind
from profkit.profilers.valgrind.window import is_window, window_argv
from profkit.runtime.passes.command import host_command
from profkit.runtime.passes.host.simulation_window import START_SECONDS
from profkit.runtime.passes.read import read_window_begin

# Simulated code is 50 to 100 times slower, and fused multiply-adds 3000 times (valgrind 3.19 does them in software,
# 65 ns a lane): 2 ms of native work is up to 6 s.
NATIVE_SECONDS = 0.002
MAX_ITERATIONS = 1000
# Wall seconds that a simulation may take, but at full depth: so many in any case, and so many for each second of a
# normal run.
SECONDS, MIN_SECONDS, SECONDS_EACH = 20.0, 5.0, 4.0
# The start of a program with a region is not simulated, but runs about ten times slower, that of torch 25 times.
START_FACTOR, START_UP = 12.0, 3.0
# A product of 400 rows in FP64 took 1,160 times as long, in FP32 it is twice that: time in BLAS is between both.
PRODUCT_COST = 1600.0
# An unmarked Python program that is too long is simulated from its hottest line on, and by the clock from this point on
# at the latest: it starts slower under valgrind, then runs at least three times slower. Never before its imports end.
# While it sleeps it is not slowed down: in the middle of one that only sleeps, half its time has gone.
BEFORE_EACH, BEFORE_ASLEEP, IMPORT_FACTOR = 1.5, 0.5, 10.0
LATEST, WINDOW, MIN_WINDOW = 25.0, 5.0, 3.0
# Of the time from its start until then it takes on average to be at that line again and again: of seven programs the
# windows began after 0.1 to 0.9 of it, and with this number each whole pass took 0.75 to 1.5 times its estimate.
USUAL_BEGIN = 0.6
# Wall seconds of a window after which the program ends by itself, where the user gives no budget: some 90 million
# instructions. And those in which callgrind writes its report.
ENOUGH, WRITING = MIN_WINDOW, 0.6
EXTENDED = 2.0  # times as long as without other programs it may take beside them
FINISH = 20.0  # to write the report once the time is over, on a busy machine too
COUNTERS = ("Ir", "Dr", "Dw", "L1 misses", "L2 misses", "L3 misses", "branches", "FLOP", "SIMD")


class Simulation(Pass):
    """The simulation by callgrind, in place of a PMU."""

    name, tool = "counters", "valgrind"
    step_names = ("simulate-l2", "simulate-l3")
    leaves = (
        "simulate-l2.callgrind.#",
        "simulate-l3.callgrind.#",
        "simulate-l2.window",
        "simulate-l3.window",
    )

    def __init__(self, context: RunContext, valgrind: ValgrindAbility) -> None:
        super().__init__(context)
        self._valgrind = valgrind

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan two parallel runs: one with L2 behind L1 (and instructions by kind), one with L3 behind L1."""
        valgrind, machine = self._valgrind, self.context.machine
        if not valgrind.works:
            return self.skip(valgrind.reason, valgrind.fix, simulated=True)
        if not is_followed(self.context.workload.command[0]):
            return self.skip(Fact("compiler-not-simulated"), simulated=True)
        first, second, third = (data_cache(machine, level) for level in (1, 2, 3))
        if first is None or second is None:
            return self.skip(Fact("unknown-caches"), simulated=True)
        inner = instruction_cache(machine)
        levels = [("simulate-l2", second)] + ([("simulate-l3", third)] if third is not None else [])
        limit, delay = self._simulated_time(state)
        address = self._hot_address(state, limit)
        if delay is not None and delay > LATEST:
            reason = Fact.of("mostly-imports", seconds=state.import_seconds or 0.0, factor=IMPORT_FACTOR)
            fix = "mark what counts with profkit.region, or --depth full"
            return self.skip(reason, fix, simulated=True)
        steps = tuple(self._step(state, name, inner, first, last, delay, address) for name, last in levels)
        # What ends by itself has to come to its end; any other window may be cut.
        needed = MIN_WINDOW if self._enough is None else self._enough + WRITING
        cost = COST
        if state.marked and state.plain_seconds is not None:
            cost = _marked_seconds(state, state.plain_seconds) / state.plain_seconds
        if state.plain_seconds is not None and limit is not None:
            seconds = limit
            if delay is not None and self._enough is not None:
                seconds = self._usual_begin(state, delay) + needed
            cost = min(cost, (1.0 if state.marked else _busy(state)) * seconds / state.plain_seconds)
        shapes = [_shape(cache) for cache in (first, second, third) if cache]
        return self.planned(
            steps,
            counters=COUNTERS,
            cost=cost,
            limit=limit,
            least=MIN_SECONDS if address is not None else delay + needed if delay is not None else None,
            parallel=True,
            simulated=True,
            notes=(*shapes, *changed_geometries(inner, first, *(level for _, level in levels))),
        )

    def _usual_begin(self, state: PlanState, delay: float) -> float:
        """Return the seconds after which a window usually begins: before `delay` where a line can be waited for."""
        if not state.lines:
            return delay
        imported = START_SECONDS + IMPORT_FACTOR * (state.import_seconds or 0.0)
        return min(delay, max(imported, START_SECONDS + USUAL_BEGIN * (delay - START_SECONDS)))

    @property
    def _enough(self) -> float | None:
        """Return the seconds of a window after which the program ends by itself; None: its limit ends it."""
        return ENOUGH if self.context.budget is None else None

    def _simulated_time(self, state: PlanState) -> tuple[float | None, float | None]:
        """Return the seconds after which the simulation ends, and begins; None: with the program."""
        if self.context.depth == "full" or state.plain_seconds is None:
            return None, None
        if state.marked:
            return 2 * _marked_seconds(state, state.plain_seconds), None
        # The simulation is extended by the time for which it waits for a processor, so that of the run does not count.
        plain = state.plain_seconds / _busy(state, most=math.inf)
        limit = min(SECONDS, MIN_SECONDS + SECONDS_EACH * plain)
        if COST * plain <= limit or self.context.workload.python is None:
            return limit, None
        awake = state.main_share
        before = BEFORE_EACH * awake + BEFORE_ASLEEP * (1.0 - awake)
        delay = min(START_SECONDS + before * plain, SECONDS - WINDOW)
        delay = max(delay, START_SECONDS + IMPORT_FACTOR * (state.import_seconds or 0.0))
        return max(limit, delay + WINDOW), delay

    def _hot_address(self, state: PlanState, limit: float | None) -> int | None:
        """Return where the simulation of a program of machine code begins that is too long for all of it."""
        program = program_file(self.context.workload)
        if limit is None or state.marked or state.plain_seconds is None or state.hottest is None:
            return None
        if program is None or shutil.which("vgdb") is None or COST * state.plain_seconds <= limit:
            return None
        return address_of(program, state.hottest)

    def _step(
        self,
        state: PlanState,
        name: str,
        inner: Cache,
        first: Cache,
        last: Cache,
        delay: float | None,
        address: int | None,
    ) -> Step:
        """Return the step that simulates one pair of caches."""
        command: Sequence[str] = self.context.workload.command
        if delay is not None:
            hosted, _ = host_command(command, "simulation-window", self.folder / f"{name}.window")
            command, delay = (hosted, delay) if hosted is not None else (command, None)
        argv = callgrind_argv(
            command,
            self.folder / f"{name}.callgrind",
            i1=inner,
            d1=first,
            last=last,
            region=state.marked or delay is not None or address is not None,
            instructions=name == "simulate-l2",
            valgrind=str(self._valgrind.path),
            setarch=self._valgrind.setarch,
            fair=delay is not None,  # a thread of its own begins the window
        )
        program, vgdb = program_file(self.context.workload), shutil.which("vgdb")
        if address is not None and program is not None and vgdb is not None:
            argv = window_argv(argv, str(program), address, str(self.folder / f"{name}.vgdb"), vgdb)
        iterations = _simulated_iterations(state.iteration_seconds) if state.marked else 1
        entries = _looked_entries(state) if self.context.depth != "full" else None
        switch = Switch("valgrind") if state.marked else None
        return Step(
            name,
            argv,
            env=single_thread_env(),
            directive=self.directive(
                name,
                switch,
                iterations=iterations,
                delay=delay,
                longest=self._enough if delay is not None else None,
                lines=state.lines[:1] if delay is not None else (),
                entries=entries,
                ends=entries is not None,
            ),
            tool="valgrind",
            finish=FINISH,
            end_signal=signal.SIGTERM,  # Python would make an exception of a SIGINT, and go on for seconds
            cut=True,
            extended=not state.marked,  # the limit of a marked program is twice its estimate already
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """Read counters and readings per iteration, for the region and for its hottest functions.

        Where the time limit ended the pass, rates are estimates and totals are not known.
        """
        return read_simulation(self.context, plan, result.seconds)


def _busy(state: PlanState, most: float = EXTENDED) -> float:
    """Return how many times as long as its work a normal run took, at least 1, because others had the processor."""
    if not state.main_seconds or state.plain_seconds is None or state.main_seconds <= 0:
        return 1.0
    return min(most, max(1.0, state.plain_seconds / state.main_seconds))


def _marked_seconds(state: PlanState, plain: float) -> float:
    """Return the wall seconds that simulating a marked program should take: its start, and its region."""
    start = inside = plain / 2  # of several regions it is not known
    if (entries := _looked_entries(state)) is not None and state.entries and state.iteration_seconds:
        start = max(0.0, plain - state.entries * state.iteration_seconds)
        inside = sum(entries) * state.iteration_seconds
    if state.benchmark and state.iteration_seconds:
        start = min(plain, state.start_seconds if state.start_seconds is not None else plain)
        inside = _simulated_iterations(state.iteration_seconds) * state.iteration_seconds
    cost = COST + (PRODUCT_COST - COST) * state.product_share
    return START_UP + START_FACTOR * start + min(SECONDS, cost * inside)


def _looked_entries(state: PlanState) -> tuple[int, int] | None:
    """Return the entries of the region that fill the caches, and those that are counted.

    The program is ended after them. None with several regions, since the last entry is not known.
    """
    if not state.marked or state.entries is None:
        return None
    if state.entries < 2:
        return 0, 1
    return 1, min(_simulated_iterations(state.iteration_seconds), state.entries - 1)


def _simulated_iterations(seconds: float | None) -> int:
    """Return the largest power of four of iterations in the native time worth simulating, at least 1.

    In steps, so that the first iterations have the same share of the counts whenever the same work is counted.
    """
    if seconds is None or seconds <= 0:
        return 1
    most = min(MAX_ITERATIONS, max(1, int(NATIVE_SECONDS / seconds)))
    return int(4 ** ((most.bit_length() - 1) // 2))


def read_simulation(context: RunContext, plan: PassPlan, seconds: float = 0.0) -> PassFindings:
    """Read counters and readings per iteration, for the region and for its hottest functions.

    `seconds`: how long the pass took. Where its time limit ended it, rates are estimates and totals are not
    known. Raises UnreadableReport where a simulation left nothing that can be read.
    """
    files = {
        step.name: callgrind_outputs(context.folder / "artifacts" / f"{step.name}.callgrind")
        for step in plan.steps
    }
    directive = plan.steps[0].directive
    windowed = directive is not None and directive.delay is not None
    over = plan.limit if plan.limit is not None and seconds >= plan.limit else None
    reports = {name: _read_report(name, paths, windowed=windowed, over=over) for name, paths in files.items()}
    done = read_region_work(context.folder, "simulate-l2")
    count, odd = done.iterations, done.odd
    levels = combine_levels(reports["simulate-l2"], reports.get("simulate-l3"))
    mix = instruction_mix(*files["simulate-l2"])
    counters = [*levels.counters, *(mix.counters() if mix is not None else ())]
    counters = [c for c in counters if c.scope.kind != "region"]  # one region is the run; see per_iteration
    per_iteration = divide_counters(_known_functions(counters), count)
    of_mix = {counter.name for counter in (mix.counters() if mix is not None else ())}
    artifacts = {name: f"artifacts/{paths[0].name}" for name, paths in files.items()}
    readings = tuple(
        _with_artifact(reading, artifacts, FROM_L2_RUN | of_mix)
        for reading in derive(per_iteration, formula_table("valgrind"), "valgrind")
    )
    notes = [*levels.warnings, *(mix.notes if mix is not None else ())]
    if count > 1:
        notes.append(Fact.of("counts-per-iteration", count=count))
    if odd is not None:
        notes.append(odd)
    if directive is not None and directive.ends and directive.entries is not None and directive.entries[0]:
        notes.append(Fact.of("entries-simulated", count=directive.entries[1]))
    if not levels.same_work:
        readings = tuple(replace(r, quality="estimated") if r.value is not None else r for r in readings)
    if (part := _simulated_part(context.folder, plan, seconds)) is not None:
        arithmetic = _arithmetic_share(readings)
        readings = tuple(_of_a_part(reading, part, arithmetic) for reading in readings)
        # two parts are never of the same work
        notes = [part, *(mix.notes if mix is not None else ())]
    # The run that is not slowed by instruction addresses has source lines: it is the one to look at by function.
    by_function = reports.get("simulate-l3", reports["simulate-l2"])
    return PassFindings(
        counters=tuple(c for c in per_iteration if c.scope.kind != "function"),
        readings=readings,
        profiles=(
            *(divide_profile(p, count) for p in by_function.profiles),
            *_loops_of(context, mix.executions if mix is not None else {}),
        ),
        facts={"counted iterations": str(count)},
        notes=tuple(notes),
        artifacts=tuple(f"artifacts/{path.name}" for paths in files.values() for path in paths),
    )


def _loops_of(
    context: RunContext, executions: Mapping[tuple[str, str], Mapping[int, int]]
) -> Iterator[Profile]:
    """Yield the inner loops of a compiled program, with the lines that they are at."""
    program = program_file(context.workload)
    if program is None or context.workload.python is not None:
        return
    found = loops_of(executions, program)
    codes = source_of_addresses(program, [loop.address for loop in found])
    total = sum(sum(counts.values()) for counts in executions.values())
    spots = []
    for loop in found:
        code = codes.get(loop.address)
        place = code.place if code is not None and code.place is not None else Place()
        spots.append(
            Hotspot(
                place.function or "",
                float(loop.executed),
                calls=loop.entries,
                file=place.file,
                line=place.line,
                counters={
                    "rounds": loop.rounds,
                    "serial": loop.serial,
                    "strided": float(loop.strided),
                    "scalar": float(loop.scalar),
                    "bytes": float(loop.bytes),
                },
            )
        )
    if spots:
        yield Profile("inner loops", "instructions", float(total), tuple(spots), "counted-loops")


def _shape(cache: Cache) -> Fact:
    """Return a fact with the geometry of a simulated cache."""
    geometry = {"level": cache.level, "size": cache.size, "ways": cache.ways}
    return Fact.of("simulated-cache", source=cache.source, **geometry)


def _simulated_part(folder: Path, plan: PassPlan, seconds: float) -> Fact | None:
    """Return which part of the program was simulated; None where all of it was."""
    step = plan.steps[0]
    delay = step.directive.delay if step.directive is not None else None
    if is_window(step.argv):
        return Fact("simulated-hot-place")
    if not step.cut or ((plan.limit is None or seconds < plan.limit) and delay is None):
        return None
    if delay is None:
        return Fact.of("simulated-beginning", seconds=plan.limit or 0.0)
    began = read_window_begin(folder / "artifacts" / f"{step.name}.window")
    return Fact.of("simulated-part", seconds=began if began is not None else delay)


_RATES = ("%", "B/FLOP", "FLOP/B")
MIN_ARITHMETIC = 0.05  # floating-point operations per instruction: as of the target for SIMD


def _arithmetic_share(readings: Sequence[Reading]) -> float | None:
    """Return floating-point operations per instruction; None where either is not known."""
    values = {r.metric: r.value for r in readings if r.scope.kind == "run" and r.value is not None}
    flops, instructions = values.get("flops"), values.get("instructions")
    return flops / instructions if flops is not None and instructions else None


def _of_a_part(reading: Reading, part: Fact, arithmetic: float | None) -> Reading:
    """Return a reading of a part of the program: rates are estimates of the whole, totals are not known."""
    if reading.value is None:
        return reading
    if reading.metric == "simd.utilization" and arithmetic is not None and arithmetic < MIN_ARITHMETIC:
        reason = Fact.of("hardly-any-arithmetic-vectorize-flop", value=arithmetic, unit="")
        return replace(reading, value=None, quality="unavailable", share=None, reason=reason)
    if reading.unit not in _RATES:
        return replace(reading, value=None, quality="unavailable", share=None, reason=part)
    return replace(reading, quality="estimated", reason=together(reading.reason, part))


def _read_report(
    name: str, paths: tuple[Path, ...], *, windowed: bool = False, over: float | None = None
) -> Report:
    """Read the counts of one simulation, which was ended after `over` seconds if it was.

    Raises UnreadableReport where it counted nothing.
    """
    if not paths:
        raise UnreadableReport(
            f"{name} left no callgrind file: the workload ended before valgrind could write"
        )
    report = read_callgrind(*paths)
    if not any(c.value for c in report.counters):
        # A program that runs for a time, not for an amount of work, does next to none of it in a simulation.
        if over is not None:
            raise UnreadableReport(
                f"{name} took more than {over:.0f} s and was ended before it had counted anything",
                "--depth full",
            )
        why = (
            "the program ended before the simulation began, as one does that looks at the clock"
            if windowed
            else "the region was never entered"
        )
        raise UnreadableReport(
            f"{name} counted nothing: {why}",
            "mark what counts with profkit.region or profkit.benchmark, or --depth full",
        )
    return report


def _with_artifact(reading: Reading, artifacts: Mapping[str, str], of_l2: Set[str]) -> Reading:
    """Return the reading with the file of its first counter, the numerator of a ratio."""
    first = (reading.source.counter or "").partition(", ")[0]
    name = "simulate-l3" if "simulate-l3" in artifacts and first not in of_l2 else "simulate-l2"
    return replace(reading, source=replace(reading.source, artifact=artifacts[name]))


def _known_functions(counters: list[Counter]) -> list[Counter]:
    """Drop functions without cache counters: the instruction mix knows more functions."""
    with_caches = {c.scope for c in counters if c.name == "Dr"}
    return [c for c in counters if c.scope.kind != "function" or c.scope in with_caches]
