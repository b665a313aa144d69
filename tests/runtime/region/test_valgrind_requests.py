"""The switch under a real valgrind: what lies in a region counts, what lies around it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.types import Report, Scope
from profkit.profilers.valgrind.read import read_callgrind
from profkit.runtime.region import valgrind as requests
from profkit.runtime.region.valgrind import ValgrindSwitch

ROOT = Path(__file__).resolve().parents[3]
SIZE = 1 << 21
LINES = SIZE // 64  # of 64 bytes, that one `work()` reads, and writes

PRELUDE = f"""
import os, sys, threading
from profkit.runtime.region.valgrind import ValgrindSwitch
switch = ValgrindSwitch()
assert switch.reason is None, switch.reason
source, sink = bytearray({SIZE}), bytearray({SIZE})
into = memoryview(sink)
def work():
    into[:] = source
def measured(name, function):
    switch.enter(name)
    function()
    switch.exit(name)
"""


def simulate(folder: Path, script: str) -> list[Report]:
    """One report per process, in order of pids."""
    argv = ["valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64"]
    argv += ["--LL=16777216,16,64", "--instr-atstart=no", "--combine-dumps=yes"]
    argv += [f"--callgrind-out-file={folder}/out.%p", sys.executable, "-I", "-S", "-c"]
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    done = subprocess.run([*argv, path + PRELUDE + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    files = sorted(folder.glob("out.*"), key=lambda p: int(p.suffix[1:]))
    return [read_callgrind(file) for file in files]


def count(report: Report, event: str, region: str | None = None) -> float:
    scope = Scope("run") if region is None else Scope("region", region)
    return next(c.value or 0.0 for c in report.counters if c.name == event and c.scope == scope)


pytest_valgrind = pytest.mark.valgrind


# ---------------------------------------------------------------- without valgrind


def test_outside_of_valgrind_nothing_happens_and_no_code_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests.mmap, "mmap", lambda *a, **k: pytest.fail("made executable memory"))
    switch = ValgrindSwitch()
    assert switch.reason == {"code": "not-under-valgrind"}
    switch.prepare()
    switch.enter("mlp")
    switch.exit("mlp")


def test_the_code_is_what_valgrinds_header_says() -> None:
    capstone = pytest.importorskip("capstone")
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoded = list(engine.disasm_lite(requests._CODE, 0))
    expected = "mov mov rol rol rol rol xchg mov ret"
    assert " ".join(mnemonic for _, _, mnemonic, _ in decoded) == expected
    turns = [int(operands.rpartition(", ")[2].lstrip("#"), 0) for _, _, m, operands in decoded if m == "rol"]
    assert sum(turns) == 128  # two whole turns: the register is as before


# ---------------------------------------------------------------- under valgrind


@pytest.mark.thorough
@pytest_valgrind
def test_regions_count_apart_their_entries_add_up_and_what_lies_between_is_not_counted(
    tmp_path: Path,
) -> None:
    script = """
switch.prepare(); work()
def twice(): work(); work()
for _ in range(2):
    measured('one', work); work()
    measured('two', twice); work()
"""
    (report,) = simulate(tmp_path, script)
    assert count(report, "D1mr", "one") == pytest.approx(2 * LINES, rel=0.02)
    assert count(report, "D1mr", "two") == pytest.approx(4 * LINES, rel=0.02)
    assert count(report, "D1mw", "one") == pytest.approx(2 * LINES, rel=0.02)
    # what ran after `prepare` left the caches warm
    assert count(report, "DLmr") + count(report, "DLmw") < 0.01 * LINES
    assert report.facts["caches at first entry"] == "warm"


@pytest.mark.thorough
@pytest_valgrind
def test_without_prepare_the_first_entry_is_cold_and_says_so(tmp_path: Path) -> None:
    (report,) = simulate(tmp_path, "work(); measured('copy', work)\n")
    assert count(report, "DLmr") == pytest.approx(LINES, rel=0.05)
    assert report.facts["caches at first entry"] == "cold"
    assert (report.facts["regions"], report.facts["entries"]) == ("copy", "1")


@pytest.mark.thorough
@pytest_valgrind
def test_threads_count_inside_the_region_and_not_outside(tmp_path: Path) -> None:
    # A thread that waits for its turn looks every 5 ms, which misses too: the more often, the busier the machine is.
    script = """
sys.setswitchinterval(1000)
def elsewhere():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
stop = threading.Event()
idle = threading.Thread(target=stop.wait)  # so that there is always more than one thread
idle.start()
switch.prepare()
elsewhere()
for _ in range(2):
    measured('copy', elsewhere)
    elsewhere()
stop.set()
"""
    (report,) = simulate(tmp_path, script)
    # starting a thread and waiting for it misses too; all five would be 5 * LINES
    assert 1.98 * LINES < count(report, "D1mr") < 3 * LINES


@pytest.mark.thorough
@pytest_valgrind
def test_a_forked_child_counts_its_own_work_only(tmp_path: Path) -> None:
    script = """
switch.prepare()
work()
measured('copy', work)
if os.fork() == 0:
    for _ in range(4):
        measured('copy', work)
    sys.exit(0)
os.wait()
"""
    parent, child = simulate(tmp_path, script)
    assert count(parent, "D1mr") == pytest.approx(1 * LINES, rel=0.02)
    assert count(child, "D1mr") == pytest.approx(4 * LINES, rel=0.02)
