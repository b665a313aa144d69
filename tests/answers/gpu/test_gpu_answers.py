"""Recorded runs of the programs on an H100: what profkit says of them today, held against the expert."""

from __future__ import annotations

import html
import lzma
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.evidence import evidence_of, unit_utilization
from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rule import MEMORY_UNITS, PIPES
from profkit.analysis.judge.rules import RULES
from profkit.analysis.judge.rules.gpu.lines import waiting_lines
from profkit.analysis.summaries.bottlenecks import classify_bottlenecks
from profkit.core.run_folder import run_to_json
from profkit.core.types import Account, Insight, Kernel, Place, RunDocument
from tests import kernel_documents
from tests.answers.gpu.recordings import RECORDINGS
from tests.answers.trial import functions_of, judge, marked_lines, recorded_document, truth_set
from tests.kernel_documents import SAMPLES
from tests.reporting.shown import run_markdown, run_page, run_text

NAMES = sorted(path.name for path in RECORDINGS.iterdir())
# Some were on no machine with a GPU yet; the others were judged as they ran.
NOT_RECORDED = {
    "leaves", "pathology",
}  # fmt: skip
SECRET = (b"/tmp/", b"/root/", b"GPU-", b"HOSTNAME", b"firecracker")


# Of these the place does not stand in the first row: what the host does while the device is idle is not known, since
# lines are recorded of torch and CUDA C++ alone, or the time is in waits after which the device has nothing to do.
ELSEWHERE = {
    "balance", "chords", "ddp_behind", "glacier", "graph_breaks", "heatmap", "item_each", "jax_fit",
    "jax_furnace", "jax_orbit", "jax_schedule", "jax_steps", "recompiled", "surrogate", "tri_gelu", "wetland",
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_the_first_answer_is_that_of_the_expert_and_the_account_of_a_step_adds_up(name: str) -> None:
    """One test, since it takes long to read a trace."""
    truths = truth_set(gpu=True)
    document = recorded_document(truths, name, RECORDINGS / name)
    found = judge(truths, name, run_to_json(document), 0.0)
    assert (found.place, found.pattern, found.forbidden, found.absurd) == (True, True, "", ""), found
    assert document.account is not None
    check_account(document.account)
    check_findings(document.account, document.insights)
    assert is_marked(truths.source_of(name), document.account.rows[0].where) != (name in ELSEWHERE)
    shown = (
        run_text(document, color=False, width=240) + run_markdown(document) + page_text(run_page(document))
    )
    assert private_names(shown, truths.source_of(name).name) == []


# Names in the middle of Python's calls, and what is left of a signature of C++ that was cut on its left.
_NEVER = re.compile(
    r"by_profkit|\w*_call_impl|_delegate_method|__next__|_run_python_pjit|_unique_impl|<locals>|\) const\b"
)
_CALLS = re.compile(r"(?:runs|waits[\w ]*): (?:[\d,]+ x )?([^\s|]+)")
_PLACED = re.compile(r"(\S+) (\w+\.py):\d+")


_TAGS = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL)


def page_text(page: str) -> str:
    """What a page shows: its text without the marks, a line each."""
    return html.unescape(_TAGS.sub("\n", page))


def private_names(text: str, program: str) -> list[str]:
    """The names in a screen that no user of a library knows: in the middle of a call, or private to a library."""
    called = (one[1].rpartition(".")[2] for one in _CALLS.finditer(text))
    placed = (one[1].rpartition(".")[2] for one in _PLACED.finditer(text) if one[2] != program)
    return [*_NEVER.findall(text), *(one for one in (*called, *placed) if one.startswith(("_", "<", "\\_")))]


def test_a_screen_with_a_private_name_of_a_library_is_found() -> None:
    program = "█ 4 %  166 ms  main train.py:24  runs: Module"
    assert private_names(f"{program}\n_own train.py:3", "train.py") == []
    assert private_names("main train.py:24  runs: __next__", "train.py") == ["__next__", "__next__"]
    assert private_names("main train.py:24  runs: 3 x _lazy_init", "train.py") == ["_lazy_init"]
    assert private_names("_raw_device_count_nvml __init__.py:900", "train.py") == ["_raw_device_count_nvml"]
    assert private_names("t<int, int>) const", "train.py") == [") const"]


def check_account(account: Account) -> None:
    """Its rows add up to the step, and none takes less than the hardware needs."""
    assert sum(row.seconds for row in account.rows) == pytest.approx(account.seconds, rel=0.01)
    assert 0 < account.least <= account.seconds
    for row in account.rows:
        assert row.seconds > 0
        assert row.least is None or 0 <= row.least <= row.seconds
        assert row.busy is None or 0 <= row.busy <= 1
        assert row.kind in ("rest", "idle") or row.what


WASTED = {rule.name for rule in RULES if rule.wasted}


def check_findings(account: Account, findings: Sequence[Insight]) -> None:
    """No finding on the kernels of a line wins more than the account says is above the limit there."""
    kernels = [row for row in account.rows if row.kind == "kernel"]
    whole = sum(row.seconds for row in kernels)
    for one in findings:
        line = one.where.file, one.where.line
        here = [row for row in kernels if None not in line and (row.where.file, row.where.line) == line]
        seconds = sum(row.seconds for row in here)
        # of a kernel that other lines launch as well the finding speaks of all its launches
        only_here = here and (one.where.share or 0.0) * whole <= 1.01 * seconds
        if one.rule in WASTED and one.gain is not None and only_here:
            room = seconds - sum(row.least or 0.0 for row in here)
            assert one.gain.at_most * account.seconds <= 1.001 * room, one.title


def is_marked(source: Path, where: Place) -> bool:
    """Whether a place is a line that the expert marked, or a function that holds one."""
    marked = marked_lines(source)
    functions = functions_of(source, marked) if source.suffix != ".py" else set()
    here = Path(where.file or "").name == source.name
    return here and (where.line in marked or where.function in functions)


def test_nearly_all_programs_are_recorded() -> None:
    assert set(truth_set(gpu=True).answers) - set(NAMES) == NOT_RECORDED


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_holds_nothing_of_the_machine(name: str) -> None:
    for path in (RECORDINGS / name).iterdir():
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        assert [word for word in SECRET if word in content] == [], path.name


@pytest.mark.parametrize(
    ("name", "lines"),
    [("item_each", {15}), ("graph_heat", {38}), ("palette", {28}), ("dqn", set()), ("decoder", set())],
)
def test_a_line_that_mostly_waits_for_the_gpu_is_no_line_that_computes(name: str, lines: set[int]) -> None:
    trace = recorded_document(truth_set(gpu=True), name, RECORDINGS / name).trace
    assert trace is not None
    assert {line for _, line in waiting_lines(trace)} == lines


# Units whose work the advice of a rule leaves as it is: it wins no more than the busiest of them leaves.
UNCHANGED = {
    "wasted-sectors": PIPES[:-1],
    "register-spills": ("DRAM", *PIPES[:-1]),
    "bank-conflicts": ("DRAM", "L2", *PIPES[:-1]),
    "divergent-warps": MEMORY_UNITS[:-1],
    "serial-atomics": ("DRAM", "L1", *PIPES),
    "waiting-warps": (*MEMORY_UNITS, *PIPES),
    "indexed-constants": (*MEMORY_UNITS, *PIPES),
    "small-blocks": ("DRAM", "L2"),
    "small-grid": (*MEMORY_UNITS, *PIPES),
    "last-wave": (*MEMORY_UNITS, *PIPES),
    "uneven-multiprocessors": (*MEMORY_UNITS, *PIPES),
}
COUNTED = (
    "transpose",
    "tile_conflicts",
    "one_counter",
    "divergent",
    "triton_spills",
    "triton_columns",
    "item_each",
    "small_triton_blocks",
    "erasure",
    "tri_router",
)


def judged(kernels: dict[Kernel, tuple[float, Mapping[str, float]]]) -> RunDocument:
    made = kernel_documents.document(kernels)
    return replace(made, kernels=classify_bottlenecks(made))


@pytest.mark.parametrize("name", [*SAMPLES, *COUNTED])
def test_a_bound_is_never_above_what_the_next_unit_leaves(name: str) -> None:
    run = (
        judged({kernel_documents.kernel("my_kernel(float *, int)"): (1e-3, SAMPLES[name])})
        if name in SAMPLES
        else recorded_document(truth_set(gpu=True), name, RECORDINGS / name)
    )
    evidence = evidence_of(run)
    kernels = {kernel.row.scope.name: kernel for kernel in evidence.kernels}
    found = [one for one in find_insights(run) if one.rule in UNCHANGED and one.gain is not None]
    for insight in found:
        kernel = kernels[insight.where.kernel]
        busy = max((unit_utilization(kernel).get(unit, 0.0) for unit in UNCHANGED[insight.rule]), default=0.0)
        assert insight.gain is not None
        assert insight.gain.at_most <= kernel.share * evidence.gpu_share * (1 - min(100, busy) / 100) + 1e-9


def test_without_recorded_lines_a_wait_is_found_by_the_sampled_line() -> None:
    run = recorded_document(truth_set(gpu=True), "item_each", RECORDINGS / "item_each")
    assert run.trace is not None
    bare = replace(run, trace=replace(run.trace, lines=(), line_span=None, lines_of=None))
    found = next(one for one in find_insights(bare) if one.rule == "device-sync")
    assert (found.where.function, found.where.line) == ("train", 15)
    assert "in each step" in found.title


def test_what_a_loop_computes_by_itself_explains_the_idle_device_and_set_up_does_not() -> None:
    run = recorded_document(truth_set(gpu=True), "item_each", RECORDINGS / "item_each")
    (sampled,) = (one for one in run.sampled if not one.native)
    made = next(line for line in sampled.lines if line.function == "train")
    code = replace(made.code, text="scores = rank(rows)", constructs=()) if made.code is not None else None
    inner = replace(made, function="rank", line=40, main_wall=6.0, main_cpu=6.0, own=6.0, code=code)
    for number, expected in ((10, "rank"), (3, None)):  # called from the loop, and from before it
        place = replace(made.callers[0], function="train", file=made.file, line=number)
        lines = (replace(inner, callers=(place,)), *sampled.lines)
        changed = replace(run, sampled=(replace(sampled, lines=lines),))
        placed = replace(changed, hot_spots=hot_spots(changed))
        found = [one.where.function for one in find_insights(placed) if one.rule == "hot-spot"]
        assert found == ([expected] if expected else []), number
