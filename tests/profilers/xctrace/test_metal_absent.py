"""What a recording does not give: the reason that it shows, and the way to get it. And shaders, where it has some."""

from __future__ import annotations

import pytest

from profkit.core.errors import UnreadableReport
from tests.profilers.xctrace.metal_cases import ME, SCREEN, SEC, read, run, state, work

INTERVALS, COUNTERS = "metal-gpu-intervals", "metal-gpu-counter-intervals"
STATES = "metal-gpu-state-intervals"
SHADERS, THERMAL = "metal-shader-profiler-intervals", "device-thermal-state-intervals"
ROWS = [work(0, 10)]


def absent(report, what):
    (one,) = [one for one in report.metal.absent if one.what == what]
    return one


@pytest.mark.parametrize(
    ("contents", "tables", "reason", "fix"),
    [
        (run(), {}, "Counter Set: (null)", "--instrument 'Metal GPU Counters'"),
        (run((), schemas=[COUNTERS]), {}, "was not exported", "xctrace export"),
        (run((), schemas=[COUNTERS]), {COUNTERS: []}, "has no rows", "--instrument 'Metal GPU Counters'"),
        (run(()), {}, "has no such table", "--instrument 'Metal GPU Counters'"),
        ((), {}, "was not exported", "xctrace export"),
    ],
)
def test_counters_are_absent_for_the_reason_that_the_recording_shows(contents, tables, reason, fix):
    found = absent(read({INTERVALS: ROWS, **tables}, contents=contents), COUNTERS)
    assert reason in found.reason
    assert fix in found.fix


def test_shaders_are_absent_for_the_reason_that_the_recording_shows():
    found = absent(read({INTERVALS: ROWS, SHADERS: []}), SHADERS)
    assert "Shader Timeline: Disabled" in found.reason
    assert "Shader Timeline switched on" in found.fix  # counters beside it would tell no shader
    assert "GPU Counters" not in found.fix
    enabled = run(("Shader Timeline: Enabled",), schemas=[SHADERS])
    assert "has no rows" in absent(read({INTERVALS: ROWS, SHADERS: []}, contents=enabled), SHADERS).reason


def test_rows_outside_of_the_region_are_no_counters_in_it():
    rows = [
        {"start": 0, "duration": 5000, "name": "ALU Utilization", "value": 5.0, "gpu": "M1", "label": "5%"}
    ]
    report = read({INTERVALS: ROWS, COUNTERS: rows}, windows=[(6, 9)], contents=run(()))
    assert report.metal.counters == ()
    assert "none of its rows lies in the part that counts" in absent(report, COUNTERS).reason


def test_nothing_but_a_table_of_contents_is_a_trace_that_lacks_everything():
    contents = run(schemas=[INTERVALS, "metal-gpu-state-intervals"])
    report = read({}, contents=contents)
    metal = report.metal
    assert (metal.span, metal.device_busy, metal.process_busy, report.trace) == (None, None, None, None)
    assert {INTERVALS, "metal-gpu-state-intervals", COUNTERS} <= {one.what for one in metal.absent}
    assert read({}, contents=run()).metal is None  # a recording of the CPU


def shader(start, duration, name, process=ME):
    return {"start": start * 1000, "duration": duration * 1000, "name": name, "process": process}


def test_shaders_of_the_process_are_summed_up_by_name():
    rows = [
        shader(0, 10, "gemm (45)"),
        shader(5, 10, "gemm (45)"),
        shader(20, 30, "silu (3)"),
        shader(0, 99, "blur", SCREEN),
    ]
    metal = read({INTERVALS: [work(0, 60)], SHADERS: rows}).metal
    assert [(one.name, one.kind, one.count) for one in metal.shaders] == [
        ("silu (3)", "shader", 1),
        ("gemm (45)", "shader", 2),
    ]
    assert metal.shaders[1].seconds == pytest.approx(20 * SEC)
    assert metal.shaders[1].busy == pytest.approx(15 * SEC)
    assert SHADERS not in [one.what for one in metal.absent]


DAMAGE = [{"duration": -5}, {"duration": None}, {"duration": 10**20}, {"start": None}, {"start": 1 << 60}]


@pytest.mark.parametrize("damaged", DAMAGE)
@pytest.mark.parametrize("schema", [INTERVALS, STATES])
def test_a_table_of_which_many_rows_tell_no_time_is_damaged(damaged, schema):
    """A table with many of them does not say how busy the GPU was; before, it was busy for 0 % of the time."""
    make = work if schema == INTERVALS else state
    rows = [{**make(20 * k, 10), **(damaged if k < 2 else {})} for k in range(100)]
    with pytest.raises(UnreadableReport, match="2 of its 100 rows tell no time"):
        read({schema: rows})
    report = read({schema: [*rows[1:], make(2000, 10)]})
    assert report.metal.device_busy == pytest.approx(990 * SEC)
    assert any("1 row without a time" in note for note in report.warnings)
