"""perf and valgrind as they misbehave in the field (fake tools, really run), and as they are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profkit.core.types import Check, Counter, CounterState
from profkit.profilers.perf import probe as perf_find
from profkit.profilers.perf.command import NO_PMU_FIX
from profkit.profilers.perf.probe import PerfAbility, judge_perf, perf_checks
from profkit.profilers.valgrind import probe as valgrind_find
from profkit.profilers.valgrind.probe import judge_valgrind, probe_valgrind

Fake = Callable[[dict[str, str]], Path]


@pytest.fixture(autouse=True)
def only_our_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look for tools on PATH alone, and remember no earlier answer."""
    monkeypatch.setattr(perf_find, "_PLACES", ())
    monkeypatch.setattr(valgrind_find, "_ELSEWHERE", ())
    probe_valgrind.cache_clear()
    yield
    probe_valgrind.cache_clear()


def _debian(tmp_path: Path, **more: str) -> Path:
    root = tmp_path / "root"
    files = {"etc/os-release": "ID=debian\n", "proc/sys/kernel/osrelease": "6.1.0-28-amd64\n", **more}
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


def _by_name(checks: Iterator[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


# ---------------------------------------------------------------- fake tools, really run

MISMATCH = """cat >&2 <<'END'
WARNING: perf not found for kernel 6.8.0-45

  You may need to install the following packages for this specific kernel:
    linux-tools-6.8.0-45-generic
END
exit 2"""
PARANOID = """[ "$1" = --version ] && { echo 'perf version 6.1.99'; exit 0; }
cat >&2 <<'END'
Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
END
exit 255"""
SECCOMP = """[ "$1" = --version ] && { echo 'perf version 6.1.99'; exit 0; }
echo 'The sys_perf_event_open() syscall returned with 38 (Function not implemented)' >&2
exit 1"""
SILENT = """[ "$1" = --version ] && echo 'perf version 6.1.99'
exit 0"""


@pytest.mark.parametrize(
    ("script", "state", "detail", "fix"),
    [
        (None, "missing", "not installed", "linux-perf|install perf|perf"),
        (MISMATCH, "missing", "no perf for kernel 6.8.0-45", "perf|linux-tools"),
        (PARANOID, "refused", "does not let this user", "perf_event_paranoid=1"),
        (SECCOMP, "refused", "seccomp", "--cap-add PERFMON"),
        (SILENT, "refused", "counted nothing", None),
    ],
)
def test_a_perf_that_cannot_measure_is_one_check_with_its_reason_and_its_fix(
    fake_tools: Fake, script: str | None, state: str, detail: str, fix: str | None
) -> None:
    fake_tools({} if script is None else {"perf": script})
    found = list(perf_checks())
    assert [(check.name, check.state) for check in found] == [("perf", state)]
    assert detail in found[0].detail
    if fix is not None:
        assert found[0].fix is not None
        assert any(word in found[0].fix for word in fix.split("|"))


@pytest.mark.parametrize(
    ("script", "state", "detail"),
    [
        (None, "missing", "not installed"),
        ('[ "$1" = --version ] && { echo valgrind-3.19.0; exit; }\nkill -SEGV $$', "refused", "ended with"),
        ('[ "$1" = --version ] && echo valgrind-3.19.0\nexit 0', "refused", "wrote no counts"),
    ],
)
def test_a_valgrind_that_cannot_simulate_is_one_check_with_its_reason(
    fake_tools: Fake, script: str | None, state: str, detail: str
) -> None:
    fake_tools({} if script is None else {"valgrind": script})
    found = list(judge_valgrind())
    assert [(check.name, check.state) for check in found] == [("valgrind", state)]
    assert detail in found[0].detail


# ---------------------------------------------------------------- what the probes' answers mean


def _counter(name: str, state: CounterState) -> Counter:
    return Counter(name, 1e6 if state in ("measured", "multiplexed") else None, state)


FULL = tuple(_counter(name, "measured") for name in ("cycles", "instructions", "branches", "cache-misses"))
GOOD = PerfAbility(
    "/usr/bin/perf",
    "6.8.1",
    software_ok=True,
    hardware_ok=True,
    record_ok=True,
    control_fifo_ok=True,
    paranoid=1,
    census=FULL,
)


def _perf(root: Path, **changes: object) -> dict[str, Check]:
    return _by_name(judge_perf(PerfAbility(**{**GOOD.__dict__, **changes}), root))


def test_a_perf_that_can_do_everything_is_good(tmp_path: Path) -> None:
    found = _perf(_debian(tmp_path))
    assert {check.state for check in found.values()} == {"ok"}
    assert (found["perf"].version, found["perf"].path) == ("6.8.1", "/usr/bin/perf")
    assert "perf_event_paranoid = 1" in found["perf"].detail


def test_no_counter_at_all_means_simulation(tmp_path: Path) -> None:
    changes = {
        "hardware_ok": False,
        "census": (_counter("cycles", "not-supported"),),
    }
    found = _perf(_debian(tmp_path), **changes)
    check = found["perf hardware counters"]
    assert (check.state, check.fix) == ("missing", NO_PMU_FIX)
    assert "simulated" in check.detail
    assert found["perf record"].state == "ok"
