"""What a region does in a workload's process, seen from outside: processes, records, exit codes."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulated_clock import SIMULATED
from tests.spoken import spoken_lines
from tests.workload_process import Done, run_workload

Run = Callable[..., Done]


@pytest.fixture
def workload(tmp_path: Path) -> Run:
    """Run a program text, profiled by default."""

    def run(
        code: str, *, profiled: bool = True, directive: dict[str, object] | None = None, **env: str
    ) -> Done:
        asked = {"pass_name": "trace", **(directive or {})} if profiled else None
        return run_workload(tmp_path, "import profkit\n" + textwrap.dedent(code), asked, **env)

    return run


# ---------------------------------------------------------------- unprofiled


def test_unprofiled_it_imports_nothing_but_itself(workload: Run) -> None:
    done = workload(
        """
        import sys
        before = set(sys.modules)
        with profkit.region("a"):
            pass
        others = {"warnings"}  # which importlib itself loads, in some versions
        print(sorted(n for n in set(sys.modules) - before - others if not n.startswith("importlib")))
        """,
        profiled=False,
    )
    assert done.out.strip() == "['profkit.runtime', 'profkit.runtime.region']"
    assert done.records == []


@pytest.mark.parametrize("profiled", [False, True])
def test_a_decorator_without_a_name_is_refused_with_a_sentence(workload: Run, profiled: bool) -> None:
    done = workload("@profkit.region\ndef f(): pass", profiled=profiled)
    assert 'TypeError: a region needs its name: @profkit.region("name")' in done.err


# ---------------------------------------------------------------- profiled


def test_entries_are_counted_and_timed(workload: Run) -> None:
    done = workload(SIMULATED + "for _ in range(3):\n    with profkit.region('a'): time.sleep(0.02)")
    region = done.region("a")
    assert (region.entries, region.iterations, len(region.seconds)) == (3, 3, 3)
    assert region.seconds == pytest.approx((0.02,) * 3, rel=0.001)


def test_a_decorator_keeps_name_and_result_and_marks_coroutines(workload: Run) -> None:
    done = workload(
        """
        import asyncio
        @profkit.region("a")
        async def wait(n):
            "its words"
            await asyncio.sleep(0.03)
            return n
        async def main():
            print(await asyncio.gather(wait(1), wait(2)), wait.__name__, wait.__doc__)
        asyncio.run(main())
        """
    )
    assert done.out == "[1, 2] wait its words\n"
    assert done.region("a").entries == 2
    assert min(done.region("a").seconds) >= 0.029


def test_a_signal_handler_may_enter_a_region_at_any_moment(workload: Run) -> None:
    done = workload(
        """
        import signal
        def handler(*_):
            with profkit.region("handler"): pass
            signal.setitimer(signal.ITIMER_REAL, 0.0005)  # again, but never while it still runs: it would pile up
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        for _ in range(30_000):
            with profkit.region("a"): pass
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        """
    )
    assert done.region("a").entries == 30_000


SWITCH = """
import sys, types
log = []
class Log:
    def enter(self, name): log.append("+" + name)
    def exit(self, name): log.append("-" + name)
sys.modules["profkit_pass_host"] = types.SimpleNamespace(switch=Log())
"""


def test_only_the_outermost_entry_switches(workload: Run) -> None:
    done = workload(
        SWITCH
        + """
with profkit.region("a"):
    with profkit.region("b"):
        with profkit.region("a"): pass
    with profkit.region("b"): pass
with profkit.region("c"): pass
print(log)
"""
    )
    assert done.out == "['+a', '-a', '+c', '-c']\n"


def test_a_directive_can_name_the_entries_that_are_switched_and_all_are_counted(workload: Run) -> None:
    code = """
for n in range(9):
    with profkit.region(f"r{n}"):
        with profkit.region("inner"): pass
print(log)
"""
    done = workload(SWITCH + code, directive={"entries": [2, 3]})
    assert done.out == "['+r2', '-r2', '+r3', '-r3', '+r4', '-r4']\n"
    assert done.region("inner").entries == 9


def test_a_switch_that_fails_is_a_note_and_not_the_workloads_end(workload: Run) -> None:
    done = workload(
        SWITCH.replace('log.append("+" + name)', "1 / 0")
        + "for _ in range(2):\n    with profkit.region('a'): pass\nprint('done')"
    )
    assert (done.code, done.out) == (0, "done\n")
    assert spoken_lines(done.record.notes) == ("Log failed: division by zero",)
    assert done.err.count("profkit:") == 1


def test_a_forked_child_leaves_its_own_record_without_the_parents_entries(workload: Run) -> None:
    done = workload(
        """
        import os, sys
        with profkit.region("before"): pass
        if os.fork() == 0:
            with profkit.region("child"): pass
            sys.exit(0)
        os.wait()
        """
    )
    assert sorted([r.name for r in record.regions] for record in done.records) == [["before"], ["child"]]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_record_all_their_entries(workload: Run, method: str) -> None:
    done = workload(
        f"""
        import multiprocessing
        def work(n):
            with profkit.region("work"): return n
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                pool.map(work, range(50))
                pool.close()
                pool.join()
        """
    )
    assert done.region("work").entries == 50


@pytest.mark.parametrize("record", ["/proc/no/such/folder/r", "/dev/full/r"])
def test_a_record_that_cannot_be_written_is_one_line_on_stderr(workload: Run, record: str) -> None:
    done = workload(
        "for _ in range(3):\n    with profkit.region('a'): pass\nprint('done')",
        directive={"record": record},
    )
    assert (done.code, done.out) == (0, "done\n")
    assert done.err.startswith("profkit: cannot write the region record: ")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "directive", ["", "{", "[]", '{"pass_name": "coffee", "record": "r"}', "null", "9" * 9999]
)
def test_a_directive_that_is_none_is_one_line_on_stderr(workload: Run, directive: str) -> None:
    done = workload("with profkit.region('a'): print('in')", PROFKIT_DIRECTIVE=directive)
    assert (done.code, done.out) == (0, "in\n")
    assert len(done.err.splitlines()) == 1
    assert "nothing is recorded" in done.err


# ---------------------------------------------------------------- perf's fifos


def test_two_processes_at_once_share_one_switch(workload: Run, tmp_path: Path) -> None:
    control, ack = tmp_path / "control", tmp_path / "ack"
    os.mkfifo(control)
    os.mkfifo(ack)
    said = os.open(control, os.O_RDWR | os.O_NONBLOCK)
    answers = os.open(ack, os.O_RDWR)
    os.write(answers, b"ack\n\0" * 2)  # one each for enable and disable; the first is drained away
    try:
        done = workload(
            """
            import os, sys
            from profkit.runtime.region import perf_control
            perf_control.PerfControl._drain = lambda self: None
            perf_control.ANSWER_SECONDS = 0.01  # both answers are read at once, so the second one is missing
            with profkit.region("parent"):
                if os.fork() == 0:
                    with profkit.region("child"): pass
                    os._exit(0)
                os.wait()
            """,
            directive={"switch": {"kind": "perf-control", "control": str(control), "ack": str(ack)}},
        )
        heard = os.read(said, 4096)
    finally:
        os.close(said)
        os.close(answers)
    assert done.code == 0
    assert heard == b"enable\ndisable\n"
    assert "profkit: other process in region" in done.err


# ---------------------------------------------------------------- a few entries, and no more

FEW: dict[str, object] = {"entries": (1, 2), "ends": True}
COUNTS = """
import sys
for number in range(9):
    with profkit.region("step"):
        print(number, flush=True)
print("end", flush=True)
"""


def test_a_program_of_which_a_few_entries_are_looked_at_ends_after_them_and_counts_those_alone(
    workload: Run,
) -> None:
    done = workload(COUNTS, directive=FEW)
    assert (done.code, done.out.split()) == (0, ["0", "1", "2"])
    (record,) = done.records
    assert [(one.name, one.entries, one.iterations) for one in record.regions] == [("step", 2, 2)]


def test_a_child_that_multiprocessing_waits_for_does_all_its_work(workload: Run) -> None:
    done = workload(
        """
        import multiprocessing
        def work(number):
            for _ in range(9):
                with profkit.region("step"):
                    pass
            return number
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
        """,
        directive=FEW,
    )
    assert done.out == "[1, 2]\n"
