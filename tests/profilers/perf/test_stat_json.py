"""Synthetic twins of the oddities of `perf stat -j` from 6.1 on."""

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.stat_text import looks_like_stat_json, read_stat_json
from tests.profilers.perf.counters import told

HEAD = '{"counter-value" : "5.000000", "unit" : "", "event" : "cycles", '


def read(tmp_path, text):
    path = tmp_path / "report"
    path.write_text(text)
    return read_stat_json(path)


@pytest.mark.parametrize(
    "line",
    [
        HEAD + '"event-runtime" : 100, "pcnt-running" : 100.00, "metric-value" : 0.5, "metric-unit" : "GHz"}',
        HEAD
        + '"event-runtime" : 100, "pcnt-running" : 100.00, "metric-value" : "nan", "metric-unit" : "(null)"}',
        HEAD + '"event-runtime" : 100, "pcnt-running" : 100.00, }',
        HEAD + '"event-runtime" : 100, "pcnt-running" : 100.00}',
        HEAD + '"variance" : 2.25, "event-runtime" : 100, "pcnt-running" : 100.00}',
        HEAD + '"event-runtime" : 100, "pcnt-running" : 100,00}',  # a French locale
        HEAD + '"event-runtime" : "100", "pcnt-running" : "100.00"}',
        HEAD.replace('"cycles"', '"cycles:u"') + '"event-runtime" : 100, "pcnt-running" : 100.00}',
        HEAD.replace('"5.000000"', "5.0") + '"event-runtime" : 100, "pcnt-running" : 100.00}',
        HEAD.replace('"5.000000"', '"5,000000"') + '"event-runtime" : 100, "pcnt-running" : 100.00}',
        "[" + HEAD + '"event-runtime" : 100, "pcnt-running" : 100.00},',
        "[\n" + HEAD + '"event-runtime" : 100, "pcnt-running" : 100.00}\n]',
    ],
)
def test_a_line_of_every_perf_is_read(tmp_path, line):
    assert looks_like_stat_json(line.encode())
    report = read(tmp_path, line + "\n")
    assert told(report) == {"cycles": 5}
    assert report.warnings == ()


@pytest.mark.parametrize(
    ("value", "runtime", "percent", "state"),
    [
        ("<not supported>", "0", "100.00", "not-supported"),
        ("<not counted>", "0", "0.00", "not-counted"),
        ("<not counted>", "0", "100.00", "not-counted"),
        ("nan", "5", "100.00", "not-counted"),
        ("0.000000", "5", "65.00", "hard-zero"),
        ("0.000000", "0", "0.00", "not-counted"),
        ("1e999", "5", "100.00", "not-counted"),
        ("", "5", "100.00", "not-counted"),
    ],
)
def test_what_is_no_count_has_its_state_and_no_value(tmp_path, value, runtime, percent, state):
    line = f'{{"counter-value" : "{value}", "unit" : "", "event" : "cycles", "event-runtime" : {runtime}, '
    (counter,) = read(tmp_path, f'{line}"pcnt-running" : {percent}}}\n').counters
    assert (counter.state, counter.value) == (state, None)


@pytest.mark.parametrize(
    "key",
    [
        '"cpu" : "0"',
        '"core" : "S0-D0-C0", "counters" : 2',
        '"thread" : "python 3-17"',
        '"cluster" : "S0-D0-CLS0"',
    ],
)
def test_rows_of_cpus_cores_and_threads_are_summed(tmp_path, key):
    line = (
        "{"
        + key
        + ', "counter-value" : "%d", "event" : "cycles", "event-runtime" : 9, "pcnt-running" : 100.00}\n'
    )
    other = line.replace("0", "1", 1).replace("17", "18")
    assert told(read(tmp_path, line % 5 + other % 7)) == {"cycles": 12}


def test_intervals_are_summed(tmp_path):
    line = '{"interval" : %s, "counter-value" : "5.0", "event" : "cycles", "event-runtime" : 9, '
    line += '"pcnt-running" : 50.00}\n'
    (counter,) = read(tmp_path, line % "1.000000001" + line % "2.000000001").counters
    assert (counter.value, counter.share) == (10, 0.5)


def test_metric_groups_and_their_lines_are_no_events(tmp_path):
    rows = HEAD + '"event-runtime" : 100, "pcnt-running" : 100.00}\n'
    rows += '{"event-runtime" : 225902840555, "pcnt-running" : 100.00, "metricgroup" : "TopdownL1"}\n'
    rows += '{"metric-value" : "nan", "metric-unit" : "%  tma_backend_bound"}\n'
    report = read(tmp_path, rows)
    assert told(report) == {"cycles": 5}
    assert report.warnings == ()


def test_the_programs_output_and_a_cut_off_end_are_said(tmp_path):
    rows = (
        "hello\n"
        + HEAD
        + '"event-runtime" : 100, "pcnt-running" : 100.00}\n{"loss": 1}\n{"counter-value" : "5'
    )
    report = read(tmp_path, rows)
    assert told(report) == {"cycles": 5}
    assert report.warnings == (
        "the last line is cut off; what stands before it was read",
        "passed over 2 lines that are not of perf stat",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("[]\n", "holds no counts"),
        ("{}\n", "holds no counts"),
        ("[" * 50_000 + "\n", "holds no counts"),
        ('{"a":' * 12_000 + "\n", "holds no counts"),
        ('{"linux-perf-json-version": 1, "samples": []}\n', "holds no counts"),
        (
            "Error:\nAccess to performance monitoring and observability operations is limited.\n",
            "does not let",
        ),
    ],
)
def test_what_holds_no_counts_is_refused_in_a_sentence(tmp_path, text, words):
    assert not looks_like_stat_json(text.encode())
    with pytest.raises(UnreadableReport, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "text", ['{"version": 3}', '{"traceEvents": []}', "[1, 2]", "", "{", '{"counter": 5}']
)
def test_json_of_others_does_not_look_like_perfs(text):
    assert not looks_like_stat_json(text.encode())


def test_objects_with_perfs_keys_and_nonsense_in_them_are_refused(tmp_path):
    with pytest.raises(UnreadableReport, match="holds no counts"):
        read(tmp_path, '{"event": 5, "counter-value": {}}\n')
