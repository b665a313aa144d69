"""Sentences about how a pass ended: why it was skipped, or failed."""

from __future__ import annotations

from profkit.reporting.sentences.formats import count_of, percent
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames

SMALLEST_REST = 0.5  # seconds: less is shown as 0 s
NOT_RECORDED = -1.0

SENTENCES = SentenceTable(
    {
        "no-command": "there is no command",
        "interactive-python": "python without a program is interactive",
        "python-runs-nothing": "this python command runs no program that could be profiled",
        "isolated-python": (
            "its Python is told to ignore environment variables, or to run nothing at its start (-E, -I, "
            "-S), which profkit needs"
        ),
        "compiler-not-simulated": (
            "it is a compiler driver, and simulating the programs that it starts takes minutes"
        ),
        "memory-of-a-gpu": (
            "the memory of a GPU program is on the GPU, and a program that imports torch starts three "
            "times as slowly under tracemalloc"
        ),
        "nothing-worth-counting": "no kernel is worth counting",
        "nothing-to-explain": "nothing was counted that could be explained",
        "no-trace-of-kernels": "there is no trace of its kernels",
        "no-kernel-missed": "no kernel missed a target",
        "no-kernel-in-region": "the marked region launched no kernel on the GPU",
        "no-kernel-traced": (
            "the workload launched no kernel on the GPU, or it ended without its exit (os._exit, exec, a "
            "signal), which loses the end of the trace"
        ),
        "unknown-caches": (
            "this machine does not report the sizes of its caches, and a simulation with guessed sizes "
            "would not describe it"
        ),
        "no-switch": "this perf cannot be switched on and off by a region (perf 5.10 and later can)",
        "no-samples-on-a-mac": "profkit cannot sample machine code on a Mac",
        "no-counts-on-a-mac": "profkit has no counters for the CPU of a Mac",
        "no-counters-of-launches": (
            "Metal has no counters of single launches that can be recorded from a command line"
        ),
        "output-refused": "the program changed its user, who may not write into the run's folder",
        "left-without-exit": (
            "nothing was written: the program left Python without its exit (os._exit, exec), or changed "
            "to a user who may not write into the run's folder"
        ),
        "nothing-to-look-at": "there is nothing for it to analyse",
        "cut-off": "ended before it was finished",
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        "result-lost": "the program wrote no result of this pass: {said}",
        "not-written": "its result could not be written: {said}",
    },
)


@SENTENCES.add("no-python-program")
def no_python_program(program: str) -> str:
    return f"not a Python program: {program}"


@SENTENCES.add("unnamed-python")
def unnamed_python(program: str) -> str:
    return f"{program} does not show which Python it starts (write `python script.py`)"


@SENTENCES.add("kernels-take-little")
def kernels_take_little(share: float) -> str:
    return (
        f"kernels take only {percent(share)} of the time, so their counters could explain no more than that"
    )


@SENTENCES.add("lost-kernels")
def lost_kernels(count: float) -> str:
    return (
        f"the host launched {count_of(count, 'kernel')}, but the trace lacks them: it ended without "
        "its exit (os._exit, exec, a signal), or nsys cannot trace this device"
    )


@SENTENCES.add("mostly-imports")
def mostly_imports(seconds: float, factor: float) -> str:
    return (
        f"loading modules takes {seconds:.1f} s, and about {factor:.0f} times as long under valgrind: "
        "simulating the first seconds would not reach the program's own work"
    )


@SENTENCES.add("some-runs")
def some_runs(parts: Parts, names: str, usable: float, runs: float) -> str:
    return f"{parts.first} (in {names}; the counts of {usable:.0f} of {runs:.0f} runs are kept)"


@SENTENCES.add("over-budget")
def over_budget(
    seconds: float, left: float, budget: float, runs: float = NOT_RECORDED, more: float = 0.0
) -> str:
    """Say whose limit it is: profkit's own, of `runs` normal runs and `more` seconds, or the user's (`runs` is 0)."""
    limit = f"--budget {budget:.0f}"
    if runs == NOT_RECORDED:
        limit = f"the time limit of {budget:.0f} s"
    elif runs:
        limit = f"profkit's own limit of {runs:.0f} normal runs + {more:.0f} s (about {budget:.0f} s)"
    if left < SMALLEST_REST:
        others = "what ran before and the more important passes need all of"
        return f"it would take about {seconds:.0f} s, but {others} {limit}"
    return f"it would take about {seconds:.0f} s, but only {left:.0f} s of {limit} are left"


@SENTENCES.add("run-without-end")
def run_without_end(name: str, seconds: float) -> str:
    return (
        f"{name} took more than {seconds:.0f} s, many times as long as the runs before; it was ended "
        "and is not counted"
    )
