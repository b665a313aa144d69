"""`perf data convert --to-json` in, stacks and tables out; the standard library's parser is the truth."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.analysis.stacks.merge import KERNEL, PYTHON
from profkit.core.errors import UnreadableReport
from profkit.core.types import Frame, Report
from profkit.profilers.json_stream import JsonStream, TruncatedJson
from profkit.profilers.perf.convert_json import looks_like_convert_json, read_convert_json
from profkit.profilers.perf.script import read_script

DATA = Path(__file__).parent.parent.parent / "data" / "perf"


def document(*samples: object, **headers: str) -> str:
    return json.dumps({"linux-perf-json-version": 1, "headers": headers, "samples": samples}, indent="\t")


def read(tmp_path: Path, text: str) -> Report:
    path = tmp_path / "in.json"
    path.write_text(text)
    return read_convert_json(path)


def test_a_recorded_conversion_has_all_samples_and_the_same_leaves(fixtures: Path):
    path = fixtures / "perf" / "vm-without-pmu-perf6.1" / "convert-to-json.json"
    truth = json.loads(path.read_text())
    assert looks_like_convert_json(path.read_bytes()[:65536])
    report = read_convert_json(path)
    assert report.facts["samples"] == str(len(truth["samples"])) == "240"
    assert report.version == "6.1.187"
    assert "vm" not in report.facts.values()  # the host's name
    functions, libraries, threads = report.profiles
    leaves = Counter(s["callchain"][0].get("symbol", "[unknown]") for s in truth["samples"])
    own: Counter[str] = Counter()
    for hotspot in functions.hotspots:
        own[hotspot.function] += int(hotspot.own)
    assert +own == leaves
    assert {h.function: h.own for h in threads.hotspots} == Counter(s["comm"] for s in truth["samples"])
    kernel = sum(any(f.get("dso") == "[kernel.kallsyms]" for f in s["callchain"]) for s in truth["samples"])
    assert next(h.total for h in libraries.hotspots if h.function == KERNEL) == kernel


def test_json_and_script_text_of_one_recording_agree(fixtures: Path):
    folder = fixtures / "perf" / "vm-without-pmu-perf6.1"
    of_json = read_convert_json(folder / "convert-to-json.json").profiles[0]
    of_text = read_script(folder / "script.py311-cpu-clock.txt").profiles[0]
    samples: Counter[tuple[str, str | None]] = Counter()
    for hotspot in of_text.hotspots:  # the JSON names no library where there is no symbol
        library = None if hotspot.function == "[unknown]" else hotspot.library
        samples[hotspot.function, library] += round(hotspot.own / 0.001003009)
    assert {(h.function, h.library): h.own for h in of_json.hotspots if h.own} == +samples


def test_own_recording_is_read():
    report = read_convert_json(DATA / "convert.json")
    assert report.facts["samples"] == str((DATA / "convert.json").read_text().count('"timestamp"'))
    assert report.stacks[0].unit == "samples"


def test_frames_are_outermost_first_and_named_as_in_script_text(tmp_path: Path):
    chain = [
        {"symbol": "py::f:a.py", "dso": "jitted-1-2.so"},
        {"ip": "0x1"},
        {"symbol": "main", "dso": "app"},
    ]
    report = read(tmp_path, document({"comm": "app", "callchain": chain}))
    expected = (Frame("main", "app"), Frame("[unknown]"), Frame("f", PYTHON, "a.py"))
    assert report.stacks[0].weights == {expected: 1}


def test_an_event_and_a_period_are_used_where_a_later_perf_gives_them(tmp_path: Path):
    sample = {"comm": "app", "event": "cpu-clock:u", "period": 2_000_000_000, "callchain": [{"symbol": "f"}]}
    report = read(tmp_path, document(sample))
    assert (report.stacks[0].unit, report.profiles[0].total) == ("s", 2.0)


def test_entries_of_another_type_are_left_out_and_said(tmp_path: Path):
    report = read(
        tmp_path, document(5, {"callchain": [7, {"symbol": 3}], "comm": [], "period": "x", "event": {}})
    )
    assert report.facts["samples"] == "1"
    assert report.warnings == ("2 entries were not understood and left out",)


TEXT = document(
    *[{"comm": "a", "callchain": [{"symbol": f"f{n}", "dso": "x"}]} for n in range(20)], arch="x86_64"
)


@pytest.mark.parametrize("end", range(0, len(TEXT), 41))
def test_wherever_it_is_cut_what_was_read_is_kept_and_said(tmp_path: Path, end: int):
    whole = TEXT[:end].count('"callchain"')
    if whole < 2:  # not one sample is certain to be whole
        return
    report = read(tmp_path, TEXT[:end])
    assert whole - 1 <= int(report.facts["samples"]) <= whole
    assert report.warnings == ("the file is cut short; what was read until there is kept",)


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_the_same_text_in_small_pieces_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
):
    whole = read(tmp_path, TEXT)
    monkeypatch.setattr("profkit.profilers.json_stream.CHUNK", size)
    assert read(tmp_path, TEXT) == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"linux-perf-json-version": 1}',
        '{"linux-perf-json-version": 1, "samples": []}',
        '{"linux-perf-json-version": 1, "samples": {}}',
        '{"linux-perf-json-version": 1, "samples": 3}',
        '{"traceEvents": []}',
        '{"linux-perf-json-version": 1, "samples": [}' + " " * 100,
        '{"linux-perf-json-version": 1 "samples": []}',
        "\x00\x01",
        "not json at all",
    ],
)
def test_what_is_no_conversion_is_refused_with_a_sentence(tmp_path: Path, text: str):
    with pytest.raises(UnreadableReport, match=r"in\.json"):
        read(tmp_path, text)


HEAD = '{"linux-perf-json-version": 1, "samples": ['


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "[" * 200_000,
        HEAD + '{"a":' * 100_000,
        HEAD + "1" * 100_000 + "]}",
        HEAD + '"' + "a" * 20_000_000,
        HEAD + " " * 5_000_000,
        HEAD + "," * 1000,
        '{"linux-perf-json-version": 1, "headers": [' + "0," * 12_000_000,
    ],
    ids=[
        "nested lists",
        "nested objects",
        "a long number",
        "a long text",
        "spaces",
        "commas",
        "a huge header",
    ],
)
def test_hostile_json_is_refused_within_seconds(tmp_path: Path, text: str):
    start = time.process_time()
    with pytest.raises(UnreadableReport):
        read(tmp_path, text)
    assert time.process_time() - start < 5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=6), st.integers(1, 40), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_stream_gives_what_the_standard_library_gives(values: list[object], size: int, ascii_only: bool):
    text = json.dumps(values, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("profkit.profilers.json_stream.CHUNK", size)
        assert list(JsonStream(io.BytesIO(text)).elements()) == json.loads(text.decode("utf-8", "replace"))


@given(st.binary(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
def test_whatever_follows_the_head_is_read_or_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "in.json"
    path.write_bytes(HEAD.encode() + b'{"comm":"a","callchain":[]},' + data)
    try:
        report = read_convert_json(path)
    except UnreadableReport:
        return
    assert int(report.facts["samples"]) >= 1


def test_numbers_cut_between_two_pieces_are_put_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("profkit.profilers.json_stream.CHUNK", 1)
    text = b"[0.5, -2.5e-7, 1E+3, 12, 0, 7.25]"
    assert list(JsonStream(io.BytesIO(text)).elements()) == json.loads(text)


def test_a_fault_in_the_middle_is_a_fault_and_not_an_early_end(tmp_path: Path):
    text = HEAD + '{"comm": "a"}, {"comm": nonsense}, ' + '{"comm": "a"}, ' * 20
    with pytest.raises(UnreadableReport, match="not valid JSON"):
        read(tmp_path, text)


def test_one_value_is_not_held_beyond_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("profkit.profilers.json_stream.MOST_VALUE", 100_000)
    with pytest.raises(UnreadableReport, match="larger than"):
        read(tmp_path, HEAD + '{"comm": "a"}, "' + "a" * 2_000_000)


def test_a_text_that_ends_within_a_value_says_so():
    with pytest.raises(TruncatedJson):
        JsonStream(io.BytesIO(b'{"a": [1, 2')).value()
