"""Every job gets exactly one outcome, whatever it does to its worker, and costs no other job."""

from __future__ import annotations

import sys
import threading
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from made_up_jobs import PLAIN, SLOW, outcomes, singles

from profkit.core.errors import MachineError
from profkit.execution import child
from profkit.execution.child import JobStatus
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from tests.workload_process import assert_gone


def group(*jobs: str, **data: str) -> list[Job]:
    return [Job(key, data.get(key)) for key in jobs]


def test_a_job_that_misbehaves_has_its_own_outcome_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two slots share the jobs; a plain function is enough for a worker."""
    kills = count()
    monkeypatch.setattr(child, "kills_for_memory", lambda: next(kills))
    pid = tmp_path / "pid"
    actions = ("crash", "leave", "be killed", "raise", "break the device", "print", "exceed memory")
    jobs: dict[str, dict[str, object]] = {action: {"do": action} for action in actions}
    jobs["hang"] = {"do": "sleep", "seconds": 1000.0}
    jobs["start a grandchild"] = {"do": "start a grandchild", "file": str(pid)}
    jobs["after all of them"] = {"do": "sleep", "seconds": 0.0}
    clients = [partial(PLAIN, log=tmp_path / f"log {slot}") for slot in range(2)]
    found, pool = outcomes(singles(jobs), *clients, timeout=6.0)
    assert {key: outcome.status.value for key, outcome in found.items()} == {
        "crash": "crash",
        "leave": "crash",
        "be killed": "out_of_memory",
        "raise": "error",
        "break the device": "crash",
        "print": "ok",
        "exceed memory": "out_of_memory" if sys.platform == "linux" else "ok",
        "hang": "timeout",
        "start a grandchild": "timeout",
        "after all of them": "ok",
    }
    assert found["crash"].reason == "its process was killed by SIGSEGV"
    assert found["leave"].reason == "its process exited with 3: what it printed last"
    assert found["be killed"].reason == "the kernel ended its process where memory ran out"
    assert found["raise"].reason == "ValueError: not this one"
    assert found["break the device"].reason == "it fell off the bus"
    assert found["hang"].reason == "it took longer than 6 s, and was ended"
    assert all(outcome.reason or outcome.status is JobStatus.ok for outcome in found.values())
    assert {outcome.slot for outcome in found.values()} == {0, 1}
    assert_gone(int(pid.read_text()))
    assert pool.fault is None


def test_the_jobs_of_a_group_have_one_worker_and_who_ends_it_costs_no_other() -> None:
    groups = [group("a", "b", "c", b="crash"), group("d", "e", "f", e="raise")]
    found, _ = outcomes(groups, SLOW, SLOW)
    statuses = {key: outcome.status.value for key, outcome in found.items()}
    assert statuses == {**dict.fromkeys("acdf", "ok"), "b": "crash", "e": "error"}
    values: dict[str, dict[str, int]] = {key: found[key].value for key in "acdf"}  # type: ignore[misc]
    assert values["d"] == values["f"]
    assert values["a"] != values["c"]
    assert found["a"].slot == found["b"].slot == found["c"].slot


def test_a_slot_that_cannot_start_costs_only_itself_and_without_any_the_jobs_are_lost() -> None:
    notes: list[str] = []
    settled: list[JobOutcome] = []
    dead = partial(SLOW, python="/bin/false")
    pool = WorkerPool([SLOW(), dead()], settled.append, timeout=9, note=notes.append)
    pool.open()
    pool.run([group("a"), group("b")])
    assert [outcome.status for outcome in settled] == [JobStatus.ok] * 2
    assert notes[0].startswith("worker 1 is gone, 1 other goes on: the worker process cannot be started: ")

    settled.clear()
    worker = SLOW()
    pool = WorkerPool([worker], settled.append, timeout=9)
    pool.open()
    worker.kill()
    worker._argv[0] = "/bin/false"
    pool.run([group("a"), group("b", "c")])
    assert [outcome.status for outcome in settled] == [JobStatus.lost] * 3
    assert isinstance(pool.fault, MachineError)
    with pytest.raises(MachineError, match="cannot be started: its process exited with 1"):
        outcomes([], dead)


def test_others_go_on_are_as_many_as_there_are() -> None:
    notes: list[str] = []
    dead = partial(SLOW, python="/bin/false")
    pool = WorkerPool([SLOW(), dead(), dead(), dead()], lambda _: None, timeout=9, note=notes.append)
    pool.open()
    pool.run([group("a")])
    told = sorted(note.partition(", ")[2].partition(":")[0] for note in notes)
    # Who dies at the same time is none of the others; a pool that is done before says nothing of the rest.
    assert told == sorted(["3 others go on", "2 others go on", "1 other goes on"][: len(told)])


@pytest.mark.parametrize("milliseconds", [0.0, 0.4, 1.0, 3.0, 300.0])
def test_a_pool_may_be_closed_at_any_moment(milliseconds: float) -> None:
    settled: list[JobOutcome] = []
    pool = WorkerPool([PLAIN()], settled.append, timeout=60.0)
    pool.open()
    threading.Timer(milliseconds / 1000, pool.close).start()
    pool.run(singles({key: {"do": "sleep", "seconds": 1000.0} for key in "ab"}))
    assert [outcome.status for outcome in settled] == [JobStatus.cancelled] * 2


def test_what_settle_and_tick_raise_ends_the_run() -> None:
    def refuse(outcome: JobOutcome) -> None:
        raise MachineError("the disk is full")

    pool = WorkerPool([SLOW()], refuse, timeout=60.0)
    pool.open()
    with pytest.raises(MachineError, match="the disk is full"):
        pool.run([group("a"), group("b")])

    def interrupt() -> None:
        raise KeyboardInterrupt

    settled: list[JobOutcome] = []
    pool = WorkerPool([PLAIN()], settled.append, timeout=60.0)
    pool.open()
    with pytest.raises(KeyboardInterrupt):
        pool.run(singles({"a": {"do": "sleep", "seconds": 1000.0}}), interrupt)
    assert [outcome.status for outcome in settled] == [JobStatus.cancelled]


def test_slots_on_different_devices_do_not_share_a_run() -> None:
    def check(slot: int, about: dict[str, object], first: dict[str, object]) -> None:
        if about["name"] != first["name"]:
            raise MachineError(f"slot {slot} is {about['name']}")

    notes: list[str] = []
    clients = [SLOW(), SLOW(arguments=("second",))]
    pool = WorkerPool(clients, lambda _: None, timeout=60.0, check=check, note=notes.append)
    pool.open()
    pool.run([])
    assert notes in ([], ["worker 1 is gone, 1 other goes on: slot 1 is second"])
