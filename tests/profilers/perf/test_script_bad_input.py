"""Truncated, foreign and hostile text: what was read is kept, or refused; never a traceback."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.script import looks_like_script, read_script

DATA = Path(__file__).parent.parent.parent / "data" / "perf"
TEXT = (DATA / "script.py313-jit.txt").read_bytes()
SAMPLE = b"app 1 1.000000: 1 cycles: \n\t  1f main+0x3 (/bin/app)\n\t  2f _start+0x1 (/bin/app)\n\n"


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "script.txt"
    path.write_bytes(data)
    return path


def test_a_text_cut_in_a_line_keeps_all_samples_but_the_last_and_says_so(tmp_path: Path):
    report = read_script(write(tmp_path, SAMPLE * 3 + SAMPLE[:50]))
    assert report.facts["samples"] == "3"
    assert report.warnings == (
        "the text ends in the middle of a line: it was cut short, and its last sample is left out",
    )


def test_a_text_without_its_last_blank_line_is_read_and_suspected(tmp_path: Path):
    report = read_script(write(tmp_path, SAMPLE * 3 + SAMPLE[:-1]))
    assert report.facts["samples"] == "4"
    assert "may be cut short" in report.warnings[0]


def test_a_text_of_one_line_samples_cut_in_a_line_keeps_the_others(tmp_path: Path):
    line = b"app 1 1.000000: 1 cycles: 1f main (/bin/app)\n"
    report = read_script(write(tmp_path, line * 3 + line[:30]))
    assert report.facts["samples"] == "3"


@pytest.mark.parametrize("end", [*range(1, 700, 23), *range(700, len(TEXT), 997)])
def test_wherever_it_is_cut_it_is_read_or_refused(tmp_path: Path, end: int):
    path = write(tmp_path, TEXT[:end])
    if b"\n\n" not in TEXT[:end]:
        with contextlib.suppress(UnreadableReport):  # not one whole sample
            read_script(path)
        return
    report = read_script(path)
    assert int(report.facts["samples"]) <= TEXT.count(b" cpu-clock:", 0, end)
    if not TEXT[:end].endswith(b")\n\n"):
        assert report.warnings


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "holds no sample"),
        (b"\n\n\n", "holds no sample"),
        (b"hello world\n" * 100, "holds no sample"),
        (b"PERFILE2" + bytes(200), "binary file"),
        (b"\x7fELF\x02\x01\x01" + bytes(64), "binary file"),
        (SAMPLE + b"\0" * 10, "binary file"),
        (bytes(range(1, 256)) * 40, "holds no sample"),
        (b"# started on Fri Nov 20 2026\n\n1003,,cycles,100,100.00,,\n", "holds no sample"),
        (b'{"linux-perf-json-version": 1, "samples": []}', "holds no sample"),
    ],
)
def test_what_is_no_perf_script_is_refused_with_a_sentence(tmp_path: Path, data: bytes, says: str):
    path = write(tmp_path, data)
    with pytest.raises(UnreadableReport, match=says) as refusal:
        read_script(path)
    assert str(path) in refusal.value.message
    if b"cycles: " not in data:
        assert not looks_like_script(data)


def test_a_recording_that_lost_every_sample_says_what_to_do(tmp_path: Path):
    path = write(tmp_path, b"app 1/1 1.000000: PERF_RECORD_LOST lost 12\n" * 3)
    with pytest.raises(UnreadableReport, match=r"lost all of them \(36\)") as refusal:
        read_script(path)
    assert refusal.value.fix


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UnreadableReport, match="cannot be read"):
            read_script(path)


@pytest.mark.parametrize(
    "foreign",
    [
        b"Nov 20 12:00:01 host kernel: [ 12.3] usb: new device\n",
        b"events: Ir Dr\nfl=(1) a.c\n",
        b"main;work 12\nmain 3\n",
        b"# Samples: 1K of event 'cycles'\n#\n# Overhead  Command\n 10.00% app\n",
        b"import os\ndef f(): pass\n",
    ],
)
def test_other_texts_do_not_look_like_perf_script(foreign: bytes):
    assert not looks_like_script(foreign)


HOSTILE = {
    "one endless line": b"a" * 3_000_000,
    "a header without end": b"app 1 " * 300_000,
    "digits without end": b"app " + b"1" * 2_000_000,
    "a frame without end": b"app 1 1.000000: 1 cycles: \n\t 1f " + b"(" * 1_000_000 + b")\n\n",
    "parentheses both ways": b"app 1 1.000000: 1 cycles: \n\t 1f " + b")(" * 200_000 + b")\n\n",
    "a stack without end": b"app 1 1.000000: 1 cycles: \n" + b"\t 1f f (/bin/a)\n" * 300_000,
    "spaces": b" " * 2_000_000 + b"\n",
    "blank lines": b"\n" * 2_000_000,
    "a new function each line": b"".join(
        b"app 1 1.000000: 1 cycles: \n\t 1f f%d (/bin/a%d)\n\n" % (n, n) for n in range(20_000)
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_costs_seconds_at_most(tmp_path: Path, kind: str):
    path = write(tmp_path, HOSTILE[kind])
    start = time.process_time()
    with contextlib.suppress(UnreadableReport):
        read_script(path)
    assert time.process_time() - start < 5


def test_a_thousand_events_are_no_recording(tmp_path: Path):
    data = b"".join(b"app 1 1.000000: 1 event%d: \n\t 1f f (/bin/a)\n\n" % n for n in range(1100))
    with pytest.raises(UnreadableReport, match="1000 events"):
        read_script(write(tmp_path, data))


pieces = st.sampled_from(
    [
        b"app 1 1.000000: 1 cycles: ",
        b"\t1f f (/bin/a)",
        b"\t",
        b"\n",
        b"\n\n",
        b"# x",
        b"(inlined)",
        b"\r\n",
        b" 1 ",
        b":",
    ]
)


@given(st.lists(pieces | st.binary(max_size=6), max_size=40).map(b"".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
def test_whatever_the_bytes_are_it_is_read_or_refused(tmp_path: Path, data: bytes):
    looks_like_script(data)
    try:
        report = read_script(write(tmp_path, data))
    except UnreadableReport:
        return
    for stacks in report.stacks:
        table = next(p for p in report.profiles if p.title == f"{stacks.title} by function")
        assert sum(stacks.weights.values()) == table.total


@given(st.lists(st.tuples(st.integers(0, len(TEXT) - 1), st.integers(1, 255)), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_damaged_bytes_never_end_in_a_traceback(tmp_path: Path, damage: list[tuple[int, int]]):
    data = bytearray(TEXT[:20_000])
    for place, byte in damage:
        data[place % len(data)] = byte
    report = read_script(write(tmp_path, bytes(data)))
    assert int(report.facts["samples"]) > 0
