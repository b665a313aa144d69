"""Synthetic twins of the odd shapes of `perf stat`: CSV, and what it prints for people, of perf 4 to 7."""

from __future__ import annotations

import tracemalloc

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.stat_csv import (
    looks_like_stat_csv,
    looks_like_stat_text,
    read_stat_csv,
    read_stat_text,
)
from profkit.profilers.registry import recognise_format
from tests.spoken import spoken, spoken_lines

READERS = {"csv": read_stat_csv, "text": read_stat_text}
LOOKS = {"csv": looks_like_stat_csv, "text": looks_like_stat_text}
TITLE = " Performance counter stats for 'x':\n\n"


def read(tmp_path, text, kind="csv"):
    path = tmp_path / "results.final"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return READERS[kind](path)


def told(report):
    """By name the value, or the state where there is none."""
    return {
        f"{c.pmu}/{c.name}" if c.pmu else c.name: c.value if c.value is not None else c.state
        for c in report.counters
    }


PLAIN = """# started on Mon Jan  5 10:00:00 2026

63.40,msec,task-clock,63400000,100.00,0.602,CPUs utilized
80114687,,cycles,40665932,64.00,1.264,GHz
<not supported>,,LLC-loads,0,100.00,,
<not counted>,,branches,0,0.00,,
0,,context-switches,63400000,100.00,0.000,/sec
"""


@pytest.mark.parametrize("separator", [",", "|", ";", "\t", ":"])
@pytest.mark.parametrize(("begin", "end"), [("", "\n"), ("\ufeff", "\r\n")])
def test_separator_and_line_ends_are_told_by_the_content(tmp_path, separator, begin, end):
    header, _, rows = PLAIN.partition("\n\n")
    text = begin + f"{header}\n\n{rows.replace(',', separator)}".replace("\n", end)
    assert looks_like_stat_csv(text.encode())
    values = {
        "task-clock": 63.40,
        "cycles": 80114687,
        "LLC-loads": "not-supported",
        "branches": "not-counted",
    }
    assert told(read(tmp_path, text)) == {**values, "context-switches": 0}


# A raw event holds the separator; with -r the variance stands before the run time; then rows of cores, threads,
# intervals, and the ends of older and newer versions.
ROWS = """
5,,cycles,100,100.00,, -> cycles=5
5,,cycles:uk,100,100.00,, -> cycles=5
5,,cycles:ppp,100,100.00,, -> cycles=5
5,,cycles:k,100,100.00,, -> cycles:k=5
5,,cpu/cycles/u,100,100.00,, -> cycles=5
5,,sched:sched_switch,100,100.00,, -> sched:sched_switch=5
5,,cpu_core/cycles/,100,100.00,, -> cpu_core/cycles=5
5,,cpu_atom__l1_miss,100,100.00,, -> cpu_atom/l1_miss=5
5,,armv8_pmuv3_0/br_mis_pred/,100,100.00,, -> armv8_pmuv3_0/br_mis_pred=5
5.00,Joules,power/energy-pkg/,100,100.00,, -> energy-pkg=5
5,,cstate_core/c6-residency/,100,100.00,, -> cstate_core/c6-residency/=5
5.25,MiB,uncore_imc/cas_count_read/,100,100.00,, -> cas_count_read=5.25
5,,cpu/event=0x29,umask=0x7,name=ls_dispatch.all/,100,100.00,, -> ls_dispatch.all=5
5,,cpu/event=0x29,umask=0x7,name='ls_dispatch.all'/u,100,100.00,, -> ls_dispatch.all=5
5,,l3/event=0x4,umask=0x1/,100,100.00,, -> l3/event=0x4,umask=0x1/=5
5,,cpu/event=0x29,umask=0x7/,my.slice,100,33.18,, -> cpu/event=0x29,umask=0x7/=5
5,,cycles,2.25%,100,100.00,0.0,GHz -> cycles=5
5,,cycles,my.slice,2.25%,100,100.00,0.0,GHz -> cycles=5
S0-D0-C1,2,5,,cycles,100,100.00,, -> cycles=5
S0,8,5,,cycles,100,100.00,, -> cycles=5
N1,8,5,,cycles,100,100.00,, -> cycles=5
CPU3,5,,cycles,100,100.00,, -> cycles=5
a,b-4711,5.00,msec,task-clock,100,100.00,, -> task-clock=5
python3.11 -c x-4711,5,,cycles,100,100.00,, -> cycles=5
     1.000100000,S0,8,5,,cycles,100,100.00,, -> cycles=5
5,,cycles,100,100.00 -> cycles=5
5,(null),cycles,100,100.00,,(null) -> cycles=5
5,,cycles,100,100.00,nan,GHz -> cycles=5
nan,,cycles,100,100.00,, -> cycles=not-counted
0,,cycles,0,100.00,, -> cycles=not-counted
63,40;msec;task-clock;63395472;64,00;0,602 -> task-clock=63.4
"""
LINES = """
          63,40 msec task-clock    #    0,602 CPUs utilized -> task-clock=63.4
          63.404040      task-clock (msec)         #    0.602 CPUs utilized -> task-clock=63.40404
      1.234,56 msec task-clock -> task-clock=1234.56
      1,234.56 msec task-clock -> task-clock=1234.56
S0-D0-C0           2              32.95 msec task-clock    #    0.541 CPUs utilized -> task-clock=32.95
CPU0                              32.95 msec task-clock -> task-clock=32.95
     1.000100000              32.95 msec task-clock    #    0.541 CPUs utilized -> task-clock=32.95
  python3-4711             32.95 msec task-clock -> task-clock=32.95
        5      cpu_core/cycles/u -> cpu_core/cycles=5
   80.114.687      cycles -> cycles=80114687
   80'114'687      cycles -> cycles=80114687
   80\u202f114\u202f687      cycles -> cycles=80114687
"""


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [("csv", *line.split(" -> ")) for line in ROWS.strip("\n").splitlines()]
    + [("text", *line.split(" -> ")) for line in LINES.strip("\n").splitlines()],
)
def test_a_line_is_read_in_every_shape(tmp_path, kind, line, expected):
    text = (TITLE if kind == "text" else "") + line + "\n"
    assert LOOKS[kind](text.encode())
    report = read(tmp_path, text, kind)
    name, _, value = expected.rpartition("=")
    assert told(report) == {name: float(value) if value[0].isdigit() else value}
    assert report.warnings == ()


NEVER_ZERO = """cycles instructions branches branch-misses cache-misses cache-references stalled-cycles-frontend
    L1-dcache-loads L1-dcache-load-misses L1-icache-load-misses r4f2e duration_time ref-cycles cpu-cycles
    branch-instructions cycles:u cpu_core/instructions/"""
MAYBE_ZERO = """task-clock page-faults context-switches cpu-migrations system_time LLC-load-misses rounding-errors
    fp_arith_inst_retired.scalar_single mem_load_retired.l3_miss"""


@pytest.mark.parametrize("event", NEVER_ZERO.split())
def test_zero_of_an_event_that_cannot_be_zero_is_a_dead_counter(tmp_path, event):
    (counter,) = read(tmp_path, f"0,,{event},5000,65.00,,\n").counters
    assert (counter.state, counter.value) == ("hard-zero", None)
    assert "impossible" in spoken(counter.reason)


@pytest.mark.parametrize("event", MAYBE_ZERO.split())
def test_zero_of_an_event_that_may_be_zero_is_a_count(tmp_path, event):
    (counter,) = read(tmp_path, f"0,,{event},5000,100.00,,\n").counters
    assert (counter.state, counter.value) == ("measured", 0)


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ("<not supported>,,cycles,0,100.00,,", "not-supported"),
        ("<not counted>,,cycles,0,0.00,,", "not-counted"),
        ("nan,,cycles,5,100.00,,", "not-counted"),
        ("0.000000,,cycles,5,65.00,,", "hard-zero"),
        ("0.000000,,cycles,0,0.00,,", "not-counted"),
    ],
)
def test_what_is_no_count_has_its_state_and_no_value(tmp_path, row, state):
    (counter,) = read(tmp_path, row + "\n").counters
    assert (counter.state, counter.value) == (state, None)


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ("9.00,msec,task-clock,9000,100.00,,\n5,,cycles,8910,99.00,,\n", 0.99),
        # 99.99 % is printed as 99.00
        ("9.00,msec,task-clock,100000,100.00,,\n5,,cycles,99990,99.00,,\n", 0.9999),
        ("9.00,msec,task-clock,100000,100.00,,\n5,,cycles,33500,33.00,,\n", 0.335),
        # the run time does not agree with the percentage: enabled for another time than the clock
        ("9.00,msec,task-clock,100000,100.00,,\n5,,cycles,10000,50.00,,\n", 0.50),
        ("5,,cycles,10000,33.18,,\n", 0.3318),
        ("5,,cycles,10000,100.00,,\n", 1.0),
    ],
)
def test_the_share_of_a_multiplexed_event_is_as_fine_as_the_report_allows(tmp_path, rows, share):
    counter = read(tmp_path, rows).counters[-1]
    assert counter.share == pytest.approx(share, abs=1e-4)
    assert counter.state == ("measured" if share == 1 else "multiplexed")


SECOND = "     {0}.000000000,1.00,msec,task-clock,1000,100.00,,\n     {0}.000000000,{1}\n"
SUMMED = {
    "two intervals": ("csv", "     1.000000000,10,,cycles,1000,100.00,,\n     2.000000000,30,,cycles,500,50.00,,\n",
                      {"cycles": 40}, {"intervals": "2"}, None),
    "no counter free": ("csv", SECOND.format(1, "8,,cycles,1000,100.00,,")
                        + "".join(SECOND.format(n, "<not counted>,,cycles,0,0.00,,") for n in (2, 3, 4)),
                        {"task-clock": 4, "cycles": 8}, {"intervals": "4"}, None),
    "CPUs": ("csv", "CPU0,5,,cycles,100,100.00,,\nCPU1,<not counted>,,cycles,0,0.00,,\nCPU2,7,,cycles,100,100.00,,\n",
             {"cycles": 12}, {}, None),
    "controllers": ("csv", "".join(f"1.50,MiB,uncore_imc_{n}/cas_count_read/,100,100.00,,\n" for n in range(4)),
                    {"cas_count_read": 6}, {}, None),
    "kinds of core": ("csv", "5,,cpu_core/cycles/,1,100.00,,\n<not counted>,,cpu_atom/cycles/,0,0.00,,\n",
                      {"cpu_core/cycles": 5, "cpu_atom/cycles": "not-counted"}, {}, None),
    "an anchor of two groups":
        ("csv", "100,,cycles,50,50.00,,\n7,,a,5,50.00,,\n110,,cycles,50,50.00,,\n8,,b,5,50.00,,\n",
         {"cycles": 100, "a": 7, "b": 8}, {}, "counted more than once; the counts differ by 9.1 %"),
    "one cgroup": ("csv", "5,,cycles,a.slice,100,100.00,,\n", {"cycles": 5}, {"cgroup": "a.slice"}, None),
    "user and all": ("csv", "9,,cycles,1,100.00,,\n5,,cycles:u,1,100.00,,\n", {"cycles": 9, "cycles:u": 5}, {}, None),
    "metrics": ("csv", "5,,cycles,1,100.00,,\n,225849327050,100.00,,,,TopdownL1\n,,,,,70.1,%  tma_backend_bound\n",
                {"cycles": 5}, {}, None),
    "other output": ("csv", "hello, world\n5,,cycles,100,100.00,,\nloss: 0.25, 17, done\n", {"cycles": 5}, {},
                     "skipped 2 lines that are not from perf stat"),
    "cut off": ("csv", "5,,cycles,100,100.00,,\n9,,instruct", {"cycles": 5}, {}, "the last line is cut off"),
    "whole without its newline": ("csv", "5,,cycles,100,100.00", {"cycles": 5}, {}, None),
    "text of cores": ("text", TITLE + "S0-D0-C0      2     5      cycles\nS0-D0-C1      2     7      cycles\n",
                      {"cycles": 12}, {}, None),
    "text of intervals":
        ("text", "#           time             counts unit events\n     1.000100000      5      cycles\n"
         "     2.000200000                  7      cycles\n", {"cycles": 12}, {"intervals": "2"}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", SUMMED)
def test_lines_are_put_together(tmp_path, case):
    kind, text, values, facts, warning = SUMMED[case]
    report = read(tmp_path, text, kind)
    assert told(report) == values
    assert facts.items() <= dict(report.facts).items()
    assert bool(spoken_lines(report.warnings)) == (warning is not None)
    assert warning is None or any(warning in said for said in spoken_lines(report.warnings))


def test_the_table_for_people_is_read_out_of_a_log(tmp_path):
    report = read(
        tmp_path,
        """
epoch 1: 5 apples, loss 0.25

 Performance counter stats for 'python train.py' (3 runs):

             63.40 msec task-clock:u                     #    0.602 CPUs utilized            ( +-  2.34% )
        80,114,687      cycles:u                         #    1.264 GHz              ( +-  0.12% )  (64.00%)
                 0      stalled-cycles-frontend          #    0.00% frontend cycles idle     (70.12%)
   <not supported>      LLC-loads
     <not counted>      branches                                                             (0.00%)
              1.50 Joules power/energy-pkg/
                        #     70.1 %  tma_backend_bound

         0.0105300 +- 0.0000450 seconds time elapsed  ( +-  0.43% )

       0.001243000 seconds user
       0.000000000 seconds sys

5 pears after the end
""",
        "text",
    )
    clocks = {"duration_time": 10_530_000, "user_time": 1_243_000, "system_time": 0}
    states = {"stalled-cycles-frontend": "hard-zero", "LLC-loads": "not-supported", "branches": "not-counted"}
    assert told(report) == {
        "task-clock": 63.40, "cycles": 80114687, **states, "energy-pkg": 1.5,
        **{name: pytest.approx(value) for name, value in clocks.items()},
    }  # fmt: skip
    assert next(c.share for c in report.counters if c.name == "cycles") == 0.64


REFUSED = {
    "csv": [
        ("", "is empty"), ("# started on Mon Jan\n\n", "holds no counts"), (b"\x7fELF\0\0\0", "binary"),
        ("x" * 100_000, "longer than 64 KiB"), (",,,,,70.1,%  tma_backend_bound\n", "holds no counts"),
        ("event syntax error: 'nosuch'\n   \\___ parser error\n", "this perf does not know the event nosuch"),
        ("63,40,msec,task-clock,63395472,100,00,0,602,CPUs utilized\n", "with a decimal comma"),
        ("\xff\xfe\xfd\n", "holds no counts"),
        ("".join(f"5,,e{n},1,100.00,,\n" for n in range(50_002)), "different ev"),
    ],
    "text": [("", "is empty"), ("5 apples\n", "no counts"), (TITLE, "no counts"), (TITLE + "x" * 5000, "no counts")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "words"), [(k, *case) for k, cases in REFUSED.items() for case in cases]
)
def test_what_holds_no_counts_is_refused_in_a_sentence(tmp_path, kind, text, words):
    with pytest.raises(UnreadableReport, match=words):
        read(tmp_path, text, kind)


def test_a_missing_file_and_a_folder_are_refused_in_a_sentence(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UnreadableReport, match="cannot be read"):
            read_stat_csv(path)


def test_a_file_cut_off_at_any_byte_gives_no_value_that_the_whole_file_does_not_give(tmp_path):
    values = {c.name: c.value for c in read(tmp_path, PLAIN).counters}
    for end in range(len(PLAIN) + 1):
        try:
            counters = read(tmp_path, PLAIN[:end]).counters
        except UnreadableReport:
            continue
        assert {c.name: c.value for c in counters}.items() <= values.items(), end


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_length_of_an_interval_file(tmp_path):
    peaks = []
    for seconds in (200, 2500, 10_000):  # the first for whatever is loaded once
        text = "".join(
            f"{s:6d}.000000001,5,,{e},1000,100.00,,\n" for s in range(seconds) for e in ("cycles", "x")
        )
        path = tmp_path / "long"
        path.write_text(text)
        tracemalloc.start()
        assert read_stat_csv(path).facts["intervals"] == str(seconds)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 300_000, "the long file is at least 500,000 bytes longer"


def test_the_table_for_people_is_read_with_the_decimal_comma_of_a_locale(tmp_path):
    report = read(
        tmp_path,
        """
 Performance counter stats for './a':

       1.234.567.890      cycles                           #    2,500 GHz
       2.345.678.901      instructions                     #    1,90  insn per cycle

       0,512345678 seconds time elapsed
""",
        "text",
    )
    clock = pytest.approx(512_345_678)
    assert told(report) == {"cycles": 1_234_567_890, "instructions": 2_345_678_901, "duration_time": clock}


ALONE = {
    "text": TITLE
    + "         CPUs utilized                  GHz       insn per cycle  branch-misses of all branches \n"
    + "                   1.0                  3.2                 1.41                           0.5% \n"
    + "\n       0.539755870 seconds time elapsed\n\n       0.225707000 seconds user\n",
    # https://lkml.org, "perf stat: Add computation of TopDown formulas"
    "top-down": " Performance counter stats for 'system wide':\n\n"
    + "             retiring     bad speculation   frontend bound   backend bound\n"
    + "  S0-C0    2     23.8%       11.6%            28.3%           36.3%\n"
    + "\n         0.000579956 seconds time elapsed\n",
    "metrics of -M": TITLE
    + "                IPC       DRAM_BW_Use\n               1.2               3,4\n\n",
    # tools/perf/Documentation/topdown.txt
    "intervals": "#           time      %  tma_retiring %  tma_backend_bound\n"
    + "     1.001141351                 11.5                 34.9\n",
    "CSV": "CPUs utilized,GHz,insn per cycle,\n0.99,3.2,1.41,\n",
    "CSV of CPUs": "# started on Mon Nov 30 01:06:46 2026\n\ncpu;IPC;\nCPU0;0.99;\nCPU1;0.99;\n",
    "CSV of intervals": "time,GHz,insn per cycle,\n1.000208486,3.2,1.41,\n",
    "JSON": '{"GHz" : "3.2", "insn per cycle" : "1.41", "branch-misses of all branches" : "0.5"}\n',
    "JSON without a counter": '{"metric-value" : ""}{"metric-value" : ""}\n',
}


@pytest.mark.parametrize("kind", ALONE)
def test_ratios_without_counts_are_named_with_the_way_on(tmp_path, kind):
    path = tmp_path / "report"
    path.write_text(ALONE[kind])
    with pytest.raises(UnreadableReport, match="--metric-only") as raised:
        recognise_format(path).read(path)
    assert raised.value.fix.startswith("perf stat -x';' -- COMMAND")


@pytest.mark.parametrize(
    "text",
    [
        "name,time,\nload,0.91,\n",
        "time,loss,\n1.0,0.5,\n",
        '{"accuracy" : "0.99"}\n',
        "IPC GHz\n1.4 3.2\n",
        "# started on Mon\n1,2,\n3.5,4.5,\n",
    ],
)
def test_another_table_of_numbers_is_not_taken_for_it(tmp_path, text):
    path = tmp_path / "report"
    path.write_text(text)
    with pytest.raises(UnreadableReport) as raised:
        recognise_format(path)
    assert "--metric-only" not in raised.value.message


def test_a_run_without_counters_is_read_for_its_time(tmp_path):
    """As `perf stat -n` prints it."""
    text = TITLE + "\n       0.539755870 seconds time elapsed\n"
    assert told(read(tmp_path, text, "text")) == {"duration_time": pytest.approx(539755870)}
