"""Whatever a file holds, a reader reads it or refuses it in a sentence; and memory stays flat."""

import itertools
import tracemalloc

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.stat_csv import looks_like_stat_csv as looks_like_csv
from profkit.profilers.perf.stat_csv import read_stat_csv
from profkit.profilers.perf.stat_text import looks_like_stat_json as looks_like_json
from profkit.profilers.perf.stat_text import looks_like_stat_text as looks_like_text
from profkit.profilers.perf.stat_text import read_stat_json, read_stat_text

CSV = b"""# started on Mon Jan  5 10:00:00 2026

     1.000000000,S0-D0-C0,1,63.40,msec,task-clock,2.25%,63395472,100.00,0.602,CPUs utilized
     1.000000000,S0-D0-C0,1,80114687,,cpu_core/cycles/u,a.slice,2.25%,40665932,64.00,1.264,GHz
     2.000000000,S0-D0-C0,1,<not supported>,,LLC-loads,0,100.00,,
     2.000000000,S0-D0-C0,1,5,,cpu/event=0x29,umask=0x7,name='x'/,100,33.18,,
,225849327050,100.00,,,,TopdownL1
,,,,,70.1,%  tma_backend_bound
"""
JSON = b"""# started on Mon Jan  5 10:00:00 2026

{"interval" : 1.000000001, "core" : "S0-D0-C0", "counters" : 1, "cgroup" : "a", \
"counter-value" : "5.000000", "unit" : "msec", "event" : "cycles:u", "variance" : 0.90, \
"event-runtime" : 787899, "pcnt-running" : 64.00, "metric-value" : "nan", "metric-unit" : "(null)"}
{"counter-value" : "<not supported>", "event" : "x", "event-runtime" : 0, \
"pcnt-running" : 100.00, }
"""
TEXT = b"""
 Performance counter stats for 'x' (3 runs):

             63.40 msec task-clock:u   #    0.602 CPUs utilized    ( +-  2.34% )
S0-D0-C0  2   80,114,687      cycles    #    1.264 GHz   (64.00%)
   <not supported>      LLC-loads

       0.010530000 +- 0.000045 seconds time elapsed  ( +-  0.43% )
"""
READERS = {"csv": (CSV, read_stat_csv), "json": (JSON, read_stat_json), "text": (TEXT, read_stat_text)}
SNIFFERS = (looks_like_csv, looks_like_json, looks_like_text)


def survives(read, path, content):
    path.write_bytes(content)
    try:
        report = read(path)
    except UnreadableReport:
        return
    assert report.counters
    for counter in report.counters:
        usable = counter.state in ("measured", "multiplexed")
        assert (counter.value is not None) == usable
        assert counter.share is None or 0 <= counter.share <= 1


@pytest.mark.parametrize("kind", READERS)
def test_a_file_cut_off_at_any_byte_is_read_or_refused(tmp_path, kind):
    content, read = READERS[kind]
    for end in range(len(content) + 1):
        survives(read, tmp_path / "cut", content[:end])


@pytest.mark.parametrize("kind", READERS)
def test_a_file_cut_off_gives_no_value_that_the_whole_file_does_not_give(tmp_path, kind):
    content, read = READERS[kind]
    path = tmp_path / "cut"
    path.write_bytes(content)
    whole = {c.name: c.value for c in read(path).counters}
    for end in range(len(content) + 1):
        path.write_bytes(content[:end])
        try:
            counters = read(path).counters
        except UnreadableReport:
            continue
        if kind != "text":  # perf's table for people has nothing at a line's end that says it is whole
            assert {c.name: c.value for c in counters}.items() <= whole.items(), end


@pytest.mark.parametrize("kind", READERS)
def test_a_file_without_any_one_byte_or_with_it_changed_is_read_or_refused(tmp_path, kind):
    content, read = READERS[kind]
    for place, byte in itertools.product(
        range(0, len(content), 7), (b"", b"\0", b",", b"\n", b"9", b"\xff", b'"')
    ):
        survives(read, tmp_path / "changed", content[:place] + byte + content[place + 1 :])


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused_or_read(tmp_path, kind, content):
    survives(READERS[kind][1], tmp_path / "random", content)
    for looks_like in SNIFFERS:
        assert looks_like(content) in (True, False)


words = st.sampled_from(
    [
        "5",
        "0",
        "-1",
        "1e999",
        "nan",
        "",
        "<not counted>",
        "<not supported>",
        "cycles",
        "x/y/",
        "100.00",
        "64.00",
        "msec",
        "2.25%",
        "     1.000000001",
        "S0-D0",
        "CPU0",
        "999999999999999999999999999",
        "a,b",
        "(null)",
        "#",
    ]
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.lists(words, max_size=11), max_size=6), separator=st.sampled_from(",|;\t:"))
def test_rows_of_perfs_own_words_in_any_order_are_refused_or_read(tmp_path, rows, separator):
    content = "\n".join(separator.join(row) for row in rows).encode()
    survives(read_stat_csv, tmp_path / "rows", content)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("cycles")),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
keys = st.sampled_from(
    [
        "counter-value",
        "event",
        "event-runtime",
        "pcnt-running",
        "unit",
        "interval",
        "cpu",
        "cgroup",
        "metric-value",
    ]
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.dictionaries(keys, json_values, max_size=9), min_size=1, max_size=4))
@example(rows=[{"event": "cycles", "counter-value": 1, "event-runtime": 1, "pcnt-running": -1}])
@example(rows=[{"event": "cycles", "counter-value": 1, "event-runtime": -1, "pcnt-running": 50}])
def test_objects_with_perfs_keys_and_any_values_are_refused_or_read(tmp_path, rows):
    import json

    survives(read_stat_json, tmp_path / "rows", "\n".join(json.dumps(row) for row in rows).encode())


def peak_of_reading(path, kind, seconds):
    with path.open("w") as file:
        for second in range(seconds):
            for event in ("cycles", "x"):
                if kind == "csv":
                    file.write(f"{second:6d}.000000001,5,,{event},1000,100.00,,\n")
                else:
                    file.write(f'{{"interval" : {second}.000000001, "counter-value" : "5.0", ')
                    file.write(f'"event" : "{event}", "event-runtime" : 9, "pcnt-running" : 100.00}}\n')
    tracemalloc.start()
    report = READERS[kind][1](path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.facts["intervals"] == str(seconds)
    return peak


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_memory_does_not_grow_with_the_length_of_an_interval_file(tmp_path, kind):
    path = tmp_path / "long"
    peak_of_reading(path, kind, 200)  # whatever is loaded once
    short, long = peak_of_reading(path, kind, 2500), peak_of_reading(path, kind, 10_000)
    assert long < short + 300_000, "the long file is at least 500,000 bytes longer"


def test_a_file_with_endless_names_of_events_is_refused(tmp_path):
    path = tmp_path / "names"
    path.write_text("".join(f"5,,event{n},100,100.00,,\n" for n in range(50_002)))
    with pytest.raises(UnreadableReport, match="different events"):
        read_stat_csv(path)
