"""What no recorded report shows: written by the format's grammar, read back."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from profkit.core.types import Counter, Report
from profkit.profilers.ncu.launches import Value
from profkit.profilers.ncu.rep import read_ncu_rep
from profkit.profilers.ncu.report import split_command
from tests.profilers.ncu import writer as w
from tests.spoken import spoken, spoken_lines

TIME = "gpu__time_duration.sum"


def everything(path: Path) -> dict[str, Value]:
    (launch,) = w.read_launches(path)
    return dict(launch.values)


def of(report: Report, metric: str) -> Counter:
    (found,) = (c for c in report.counters if c.name == metric)
    return found


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (1.5, 1.5),
        (w.Float32(0.1), pytest.approx(0.1, rel=1e-6)),
        (2**64 - 1, 2**64 - 1),
        (w.Uint32(2**32 - 1), 2**32 - 1),
        ("PolicySpread", "PolicySpread"),
        ("", ""),
        (math.inf, math.inf),
        (w.Instances((1.0, 2.0)), None),
        (w.Instances((1.0, 2.0), total=3.0), 3.0),
    ],
)
def test_every_kind_of_value_is_read(tmp_path: Path, written: w.Value, read: Value) -> None:
    path = w.write(tmp_path / "made.ncu-rep", w.simple([w.KernelResult("k", {"a__b.sum": written})]))
    assert everything(path) == {"a__b.sum": read}


@pytest.mark.parametrize(
    ("values", "value", "state", "reason"),
    [
        ([w.NAN], None, "not-counted", "NaN"),
        ([math.inf], None, "not-counted", "infinite"),
        ([w.Instances((1.0,))], None, "not-counted", "no value of its own, only instances"),
        ([w.NAN, w.NAN], None, "not-counted", "NaN in 2 of 2 launches"),
        ([4.0, w.NAN, 8.0], 6.0, "measured", "NaN in 1 of 3 launches"),
        ([0.0], 0.0, "measured", None),
        ([1, 9, 2], 2.0, "measured", None),
    ],
)
def test_what_is_no_number_is_not_counted_and_says_so(
    tmp_path: Path, values: list[w.Value], value: float | None, state: str, reason: str | None
) -> None:
    results = [w.KernelResult("k", {TIME: one}) for one in values]
    counter = of(read_ncu_rep(w.write(tmp_path / "made.ncu-rep", w.simple(results))), TIME)
    assert (counter.value, counter.state, counter.unit) == (value, state, "ns")
    assert spoken(counter.reason) == (reason or "")


def test_one_block_or_many_with_or_without_sizes_are_the_same_report(tmp_path: Path) -> None:
    kernels = [w.KernelResult("k", {TIME: float(n), "launch__grid_size": n}) for n in range(1, 6)]
    names, unsized = w.Names(), w.Names()
    files = [
        w.simple(kernels),
        w.report(w.block(details=w.session()), *(w.block([k], names) for k in kernels)),
        w.report(*(w.block([k], unsized, sized=False) for k in kernels), w.block(details=w.session())),
    ]
    reports = [read_ncu_rep(w.write(tmp_path / f"{n}.ncu-rep", content)) for n, content in enumerate(files)]
    assert reports[0] == reports[1] == reports[2]
    assert reports[0].trace is not None
    assert reports[0].trace.kernels[0].total == pytest.approx(15e-9)


def test_unknown_fields_of_every_wire_type_are_stepped_over(tmp_path: Path) -> None:
    more = w.number(900, 2**63) + w.lump(901, b"\xff" * 300) + w.double(902, 1.0) + w.single(903, 1.0)
    content = w.report(
        w.block(details=w.session(more=more)), w.block([w.KernelResult("k", {TIME: 7.0}, more=more)])
    )
    path = w.write(tmp_path / "made.ncu-rep", content)
    assert everything(path) == {TIME: 7.0}
    assert read_ncu_rep(path).version == "2025.3.1"


def test_a_launch_that_ncu_could_not_finish_is_no_kernel_without_values(tmp_path: Path) -> None:
    left = {"device__attribute_multiprocessor_count": 22, "profiler__replayer_passes": 3}
    results = [
        w.KernelResult("done", {TIME: 5.0, **left}),
        w.KernelResult("trace", left, grid=(0, 0, 0), block=(0, 0, 0)),
    ]
    report = read_ncu_rep(w.write(tmp_path / "made.ncu-rep", w.simple(results)))
    assert {counter.scope.name for counter in report.counters} == {"done"}
    assert [
        line for line in spoken_lines(report.warnings) if line.startswith("trace could not be counted")
    ] != []


def test_results_of_several_kernels_as_one_are_left_out_and_told(tmp_path: Path) -> None:
    together: list[w.Result] = [w.TogetherResult({TIME: 5.0}), w.TogetherResult({TIME: 6.0}, kind=9)]
    results = [*together, w.KernelResult("k", {TIME: 3.0}), w.TogetherResult({TIME: 1.0}, kind=8)]
    report = read_ncu_rep(w.write(tmp_path / "made.ncu-rep", w.simple(results)))
    assert {(c.scope.kind, c.scope.name, c.value) for c in report.counters} == {("kernel", "k", 3.0)}
    assert spoken_lines(report.warnings)[0].startswith("left out: 3 results of ranges or graphs")
    report = read_ncu_rep(w.write(tmp_path / "alone.ncu-rep", w.simple(together)))
    assert (report.trace, report.counters) == (None, ())
    assert spoken_lines(report.warnings)[0].startswith("left out: 2 results of ranges or graphs")


@pytest.mark.parametrize(
    ("line", "workload", "option"),
    [
        ("ncu -o out -- python3 a.py --nvtx", ("python3", "a.py", "--nvtx"), ("-o", "out")),
        ("ncu -f -o profile build/app -x", ("build/app", "-x"), ("-f", "")),
        ("ncu --set=full --nvtx python3 a.py", ("python3", "a.py"), ("--set", "full")),
        ("ncu --cache-control none ./a.out ", ("./a.out",), ("--cache-control", "none")),
        ("ncu --mode attach", (), ("--mode", "attach")),
        ("ncu -k regex:a'b app", ("app",), ("-k", "regex:a'b")),  # a lone quote: recorded without its own
    ],
)
def test_a_recorded_command_line_is_parted_into_options_and_workload(
    line: str, workload: tuple[str, ...], option: tuple[str, str]
) -> None:
    options, words = split_command(line)
    assert words == workload
    assert options[option[0]] == option[1]


def test_several_devices_are_told(tmp_path: Path) -> None:
    names = w.Names()
    device = {"launch__device_id": w.Uint32(1), TIME: 1.0}
    content = w.report(
        w.block(details=w.session()),
        w.block((), details=w.session(device_name="NVIDIA A100", index=1)),
        w.block(
            [w.KernelResult("k", {"launch__device_id": w.Uint32(0), TIME: 3.0})],
            names,
        ),
        w.block([w.KernelResult("k", device)], names),
    )
    path = w.write(tmp_path / "made.ncu-rep", content)
    assert [launch.device for launch in w.read_launches(path)] == [0, 1]
    report = read_ncu_rep(path)
    assert [(gpu.index, gpu.name) for gpu in report.gpus] == [(0, "NVIDIA H200"), (1, "NVIDIA A100")]
    assert any("several devices" in warning for warning in spoken_lines(report.warnings))
