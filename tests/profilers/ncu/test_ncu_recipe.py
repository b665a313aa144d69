"""`profkit record --tool ncu` as far as it goes without a GPU: the step, and what is made of what ncu left."""

from __future__ import annotations

import pytest

from profkit.core.errors import MachineError
from profkit.hardware.machine import read_machine
from profkit.profilers.ncu import recipe as recipes
from profkit.profilers.ncu.probe import NcuAbility
from profkit.profilers.profiler import RecordRequest
from tests.conftest import ROOT

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
    monkeypatch.setattr(recipes, "probe_ncu", lambda: ability)
    return recipes.recording_step(request(tmp_path, **more))


def test_every_kernel_is_counted_with_what_judges_it(monkeypatch, tmp_path):
    made = step(monkeypatch, tmp_path)
    assert "--kernel-name" not in made.argv
    assert "--section" not in made.argv
    assert "smsp__sass_data_bytes_mem_global_op_ld.sum" in made.argv[made.argv.index("--metrics") + 1]
    assert made.argv[-2:] == ("python", "x.py")
    assert made.workload_status is not None
    assert made.directive.switch is None


def test_one_kernel_is_counted_with_all_that_explains_it(monkeypatch, tmp_path):
    made = step(monkeypatch, tmp_path, kernel="silu_mul")
    assert made.argv[made.argv.index("--kernel-name") + 1] == "regex:silu_mul"
    assert made.argv[made.argv.index("--section") + 1] == "SourceCounters"


def test_a_marked_workload_switches_its_region(monkeypatch, tmp_path):
    made = step(monkeypatch, tmp_path, marked=True)
    assert made.directive.switch.kind == "cuda"
    assert made.argv[made.argv.index("--profile-from-start") + 1] == "off"


def test_where_counters_are_closed_nothing_is_run(monkeypatch, tmp_path):
    with pytest.raises(MachineError, match="closed") as told:
        step(monkeypatch, tmp_path, NcuAbility(None, None, False, "closed", "open"))
    assert told.value.fix == "open"


def test_what_ncu_left_is_brought_under_the_name_that_was_asked_for(tmp_path):
    (tmp_path / "record.ncu-rep").write_bytes(b"NVR\0")
    assert recipes.collect(request(tmp_path)) == ()
    assert (tmp_path / "out.rep").read_bytes() == b"NVR\0"


def test_where_it_left_nothing_its_own_reason_is_told(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "record.log").write_text((TEXTS / "error.no-kernels.txt").read_text())
    with pytest.raises(MachineError, match="ncu saw chase, divergent") as told:
        recipes.collect(request(tmp_path))
    assert "--kernel" in told.value.fix


def test_where_nobody_said_anything_nothing_is_made_up(tmp_path):
    assert recipes.collect(request(tmp_path)) == ()
    assert not (tmp_path / "out.rep").exists()
