"""Results of other benchmark tools: what they measured, in our words, told by what is in the file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Entry, Value
from profkit.regression.history.imports import import_file
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "history"
ASV = DATA / "asv" / "results" / "box" / "3eab1a8e-existing-py_usr_bin_python3.json"
FILES = {
    "pytest-benchmark": DATA / "pytest-benchmark.json",
    "google-benchmark": DATA / "google-benchmark.repetitions.json",
    "asv": ASV,
}


def told(path: Path) -> Entry:
    entry = import_file(path)
    assert entry is not None
    return entry


def of(entry: Entry, name: str, metric: str = "time.median") -> Value:
    (found,) = [v for v in entry.values if (v.key.scope.name, v.key.metric) == (name, metric)]
    return found


def test_pytest_benchmark() -> None:
    entry = told(FILES["pytest-benchmark"])
    assert (entry.source, entry.workload, entry.backend) == ("pytest-benchmark", "small", "cpu")
    assert entry.started == "2026-11-20T13:56:25.373157+00:00"
    assert (entry.commit, entry.dirty) == ("95cf6474a6c9e7b040ab53fea8d3f5aaa6f012a4", False)
    value = of(entry, "test_small.py::test_sum[100]")
    assert (value.value, value.unit, value.better) == (5.038000381318852e-07, "s", "lower")
    assert [len(group) for group in value.groups] == [60]
    assert of(entry, "test_small.py::test_join").groups == ()
    assert of(entry, "test_small.py::test_sum[1000]", "time.mean").value == 4.0693968753740684e-05
    assert {f.name: f.value for f in entry.features}["machine.cpu"] == "AMD EPYC"


def test_google_benchmark_with_repetitions() -> None:
    entry = told(FILES["google-benchmark"])
    assert (entry.source, entry.workload, entry.started) == (
        "google-benchmark",
        "gb",
        "2026-11-20T13:56:27+00:00",
    )
    value = of(entry, "sum/64")
    assert value.value == pytest.approx(0.05979761354451619e-6)  # as the tool's own median says
    assert value.groups[0][0] == pytest.approx(0.07722030813055536e-6)
    assert of(entry, "manual/iterations:3/manual_time").value == pytest.approx(2e-3)
    assert of(entry, "sum/4096", "counter.elements").value == 4096
    rate = of(entry, "sum/64", "bandwidth.declared")
    assert (rate.unit, rate.better) == ("B/s", "higher")


def test_a_benchmark_that_failed_has_no_value_and_its_reason() -> None:
    """Google Benchmark writes a time of 0 for it."""
    entry = told(FILES["google-benchmark"])
    assert not [value for value in entry.values if value.key.scope.name == "fails"]
    assert entry.facts["left out"] == 'fails: no "device"'


def test_google_benchmark_with_aggregates_alone() -> None:
    entry = told(DATA / "google-benchmark.aggregates.json")
    assert of(entry, "sum/64").value == pytest.approx(0.05979761354451619e-6)
    assert of(entry, "sum/64", "time.mean").value == pytest.approx(0.06202618372322254e-6)
    assert of(entry, "sum/64").groups == ()


def test_asv() -> None:
    entry = told(ASV)
    assert (entry.source, entry.workload) == ("asv", "small")
    assert entry.commit == "3eab1a8ec442a4be5f1556467ac9c14c082763a4"
    assert entry.started == "2026-11-20T13:56:50+00:00"  # of the commit
    value = of(entry, "bench.Sums.time_sum(1000, 'a')")
    assert (value.value, len(value.groups[0])) == (8.745080003791373e-06, 8)
    assert of(entry, "bench.mem_list", "memory.object").value == 8056
    assert of(entry, "bench.peakmem_list", "memory.rss_peak").unit == "B"
    track = of(entry, "bench.Sums.track_size(100, 'b')", "track")
    assert (track.value, track.unit, track.better) == (200, "items", "none")
    assert entry.facts["left out"] == "bench.time_broken: it failed"


def test_an_asv_file_whose_parameters_have_more_combinations_than_results_is_read_at_once(
    tmp_path: Path,
) -> None:
    data = json.loads(ASV.read_text())
    sums = "bench.Sums.time_sum"
    data["results"][sums][data["result_columns"].index("params")] = [["1", "2"]] * 200
    (tmp_path / "result.json").write_text(json.dumps(data))
    left_out = told(tmp_path / "result.json").facts["left out"]
    assert f"{sums}: its results are not as many as its parameters have combinations" in left_out


def test_asv_without_the_files_beside_it(tmp_path: Path) -> None:
    shutil.copy(ASV, tmp_path)
    entry = told(tmp_path / ASV.name)
    assert entry.workload == "asv"
    assert of(entry, "bench.mem_list", "memory.object").value == 8056  # by the beginning of its name


# ---------------------------------------------------------------- nvbench, by the grammar of its printers


def nvbench(folder: Path) -> Path:
    """What nvbench's JSON printer of 2026 writes: numbers as text."""

    def summary(tag: str, value: float) -> dict[str, Any]:
        data = [{"name": "value", "type": "float64", "value": repr(value)}]
        return {"tag": tag, "name": tag, "hint": "duration", "description": "", "data": data}

    state = {
        "name": "Device=0 Elements=2^20 T=I32",
        "device": 0,
        "axis_values": [
            {"name": "Elements", "type": "int64", "value": "1048576"},
            {"name": "T", "type": "type", "input_string": "I32"},
        ],
        "summaries": [
            summary("nv/cold/time/gpu/median", 1.25e-3),
            summary("nv/cold/time/gpu/mean", 1.5e-3),
            summary("nv/cold/time/cpu/mean", 2e-3),
            summary("nv/cold/bw/global/bytes_per_second", 8e11),
            summary("nv/cold/sm_clock_rate/mean", 1.98e9),
        ],
        "is_skipped": False,
    }
    skipped = {
        "name": "x",
        "axis_values": None,
        "summaries": None,
        "is_skipped": True,
        "skip_reason": "too large",
    }
    document = {
        "meta": {
            "argv": ["./bench/copy", "--json", "out/nv.json"],
            "version": {"nvbench": {"string": "0.2.0"}},
        },
        "devices": [
            {"id": 0, "name": "NVIDIA H200", "number_of_sms": 132, "sm_version": 900, "ecc_state": True}
        ],
        "benchmarks": [{"name": "copy", "devices": [0], "axes": None, "states": [state, skipped]}],
    }
    path = folder / "nv.json"
    path.write_text(json.dumps(document))
    return path


def test_nvbench(tmp_path: Path) -> None:
    entry = told(nvbench(tmp_path))
    assert (entry.source, entry.workload, entry.backend) == ("nvbench", "copy", "cuda")
    name = "copy[Elements=1048576 T=I32]"
    assert of(entry, name).value == pytest.approx(1.25e-3)
    assert of(entry, name, "time.mean").value == 1.5e-3
    assert of(entry, name, "bandwidth.declared").value == 8e11
    assert entry.facts["left out"] == "copy: too large"
    assert entry.facts["started"].startswith("the time of the file")
    assert {f.name: (f.value, f.tier) for f in entry.features}["gpu.name"] == ("NVIDIA H200", "must")


@pytest.mark.parametrize("source", FILES)
def test_each_is_told_by_its_content_and_the_same_wherever_it_lies(source: str, tmp_path: Path) -> None:
    path = tmp_path / "<script>'\".txt"
    path.write_text(json.dumps(json.loads(FILES[source].read_text()), indent=3))
    there, here = told(FILES[source]), told(path)
    assert here.source == source
    assert here.id == there.id


@pytest.mark.parametrize("source", FILES)
def test_a_file_that_is_cut_off_is_refused(source: str, tmp_path: Path) -> None:
    content = FILES[source].read_bytes()
    path = tmp_path / "cut.json"
    for kept in (0.2, 0.7, 0.99):
        path.write_bytes(content[: int(kept * len(content))])
        with pytest.raises(UnreadableReport, match="not whole JSON"):
            import_file(path)


def fault_of(path: Path) -> str | None:
    """What is said of a file; None where it is read, or nobody's."""
    try:
        import_file(path)
    except UnreadableReport as fault:
        return fault.message
    return None


def mangled(data: Any, instead: Any) -> list[Any]:
    """The document with each of its values in turn (of the first element of each list) replaced."""
    found = []
    if isinstance(data, dict):
        for key in data:
            found += [{**data, key: inner} for inner in [instead, *mangled(data[key], instead)]]
    elif isinstance(data, list) and data:
        found += [[inner, *data[1:]] for inner in [instead, *mangled(data[0], instead)]]
    return found


@pytest.mark.parametrize("source", FILES)
@pytest.mark.parametrize(
    "instead",
    [None, [], {}, "<script>\ud800", -1e308, 10**400, True, float("nan")],
    ids=["null", "list", "object", "text", "negative", "huge", "true", "NaN"],
)
def test_no_value_of_another_type_is_a_traceback(source: str, instead: Any, tmp_path: Path) -> None:
    path = tmp_path / "mangled.json"
    for document in mangled(json.loads(FILES[source].read_text()), instead):
        path.write_text(json.dumps(document))
        assert "mangled.json" in (fault_of(path) or "mangled.json")


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"a": ' * 100_000, "{", '{"benchmarks": []}', '{"results": {}}', "{}", "\xff\xfe"],
)
def test_json_of_nobody_is_nobodys(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, encoding="latin-1")
    assert str(path) in (fault_of(path) or str(path))


def test_a_result_without_a_value_is_refused_with_the_reason(tmp_path: Path) -> None:
    data = json.loads(FILES["google-benchmark"].read_text())
    data["benchmarks"] = [row for row in data["benchmarks"] if row["name"] == "fails"]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(data))
    with pytest.raises(UnreadableReport, match='nothing in it has a value: fails: no "device"'):
        import_file(path)
