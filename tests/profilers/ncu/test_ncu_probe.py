"""What ncu can do here, and the step that `profkit record --tool ncu` makes of it, without a GPU."""

from __future__ import annotations

import json

import pytest

from profkit.core.errors import Fault, MachineError
from profkit.core.types import Gpu
from profkit.hardware.machine import read_machine
from profkit.profilers.ncu import probe
from profkit.profilers.ncu.probe import NcuAbility, probe_ncu
from profkit.profilers.profiler import RecordRequest
from tests.conftest import ROOT

STAND_IN = ROOT / "tests" / "stand_ins" / "ncu"
H200 = Gpu("NVIDIA H200", capability="9.0", chip="GH100", driver="580.159.04")


@pytest.fixture(autouse=True)
def afresh():
    probe_ncu.cache_clear()
    yield
    probe_ncu.cache_clear()


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with these devices, whose driver or rights have this fault, and an ncu of that version."""

    def make(gpus=(H200,), driver=None, rights=None, version="2025.3.1.0"):
        scenario = tmp_path / "scenario.json"
        scenario.write_text(json.dumps({"version": version}))
        monkeypatch.setenv("NCU_SCENARIO", str(scenario))
        monkeypatch.setenv("PROFKIT_NCU", str(STAND_IN))
        monkeypatch.setattr(probe, "read_gpus", lambda: gpus)
        monkeypatch.setattr(probe, "driver_fault", lambda: driver)
        monkeypatch.setattr(probe, "counters_fault", lambda: rights)

    return make


def test_an_open_machine_can_count(machine):
    machine()
    found = probe_ncu()
    assert (found.works, found.version, found.chips) == (True, "2025.3.1.0", ("GH100",))
    assert (found.reason, found.fix) == (None, None)


def test_closed_counters_are_a_reason_with_a_fix(machine):
    machine(rights=Fault("closed", "open them"))
    found = probe_ncu()
    assert (found.works, found.reason, found.fix) == (False, "closed", "open them")
    assert found.version


def test_without_ncu_the_fix_is_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PROFKIT_NCU", "/nowhere/ncu")
    found = probe_ncu()
    assert (found.path, found.works) == (None, False)
    assert "PROFKIT_NCU=/nowhere/ncu" in found.reason
    monkeypatch.delenv("PROFKIT_NCU")
    monkeypatch.setattr("profkit.profilers.ncu.probe.find_ncu", lambda: None)
    probe_ncu.cache_clear()
    found = probe_ncu()
    assert "not installed" in found.reason
    assert "nsight-compute" in found.fix


# ------------------------------------------------------------ where it is


TEXTS = ROOT / "tests" / "data" / "cuda" / "texts"
ABLE = NcuAbility(ROOT / "ncu", "2025.3.1.0", True, chips=("GH100",))


def request(tmp_path, **more):
    return RecordRequest(
        "counters",
        ("python", "x.py"),
        tmp_path / "out.rep",
        tmp_path,
        read_machine(),
        **{"marked": False, "python": (3, 11), **more},
    )


def step(monkeypatch, tmp_path, ability=ABLE, **more):
    monkeypatch.setattr("profkit.profilers.ncu.probe.probe_ncu", lambda: ability)
    return probe.recording_step(request(tmp_path, **more))


def test_every_kernel_is_counted_with_what_judges_it(monkeypatch, tmp_path):
    made = step(monkeypatch, tmp_path)
    assert "--kernel-name" not in made.argv
    assert "--section" not in made.argv
    assert "smsp__sass_data_bytes_mem_global_op_ld.sum" in made.argv[made.argv.index("--metrics") + 1]
    assert made.argv[-2:] == ("python", "x.py")
    assert made.signals_as_codes  # no shell stands between ncu and the workload: it would slow each launch
    assert made.directive.switch is None


def test_a_marked_workload_switches_its_region(monkeypatch, tmp_path):
    made = step(monkeypatch, tmp_path, marked=True)
    assert made.directive.switch.kind == "cuda"
    assert made.argv[made.argv.index("--profile-from-start") + 1] == "off"


def test_where_it_left_nothing_its_own_reason_is_told(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "record.log").write_text((TEXTS / "error.no-kernels.txt").read_text())
    with pytest.raises(MachineError, match="ncu saw chase, divergent") as told:
        probe.collect_report(request(tmp_path))
    assert "--kernel" in told.value.fix
