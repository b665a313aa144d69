"""Synthetic twins of every odd shape of `perf stat -x`."""

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.stat_csv import looks_like_stat_csv, read_stat_csv

PLAIN = """\
# started on Mon Jan  5 10:00:00 2026

63.40,msec,task-clock,63400000,100.00,0.602,CPUs utilized
80114687,,cycles,40665932,64.00,1.264,GHz
<not supported>,,LLC-loads,0,100.00,,
<not counted>,,branches,0,0.00,,
0,,context-switches,63400000,100.00,0.000,/sec
"""


def read(tmp_path, text, name="report"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_stat_csv(path)


def told(report):
    return {
        (f"{c.pmu} " if c.pmu else "") + c.name: c.value if c.value is not None else c.state
        for c in report.counters
    }


EXPECTED = {
    "task-clock": 63.40,
    "cycles": 80114687,
    "LLC-loads": "not-supported",
    "branches": "not-counted",
    "context-switches": 0,
}


@pytest.mark.parametrize("separator", [",", "|", ";", "\t", ":"])
def test_the_separator_is_told_by_the_content(tmp_path, separator):
    header, _, rows = PLAIN.partition("\n\n")
    text = f"{header}\n\n{rows.replace(',', separator)}"
    assert looks_like_stat_csv(text.encode())
    assert told(read(tmp_path, text)) == EXPECTED


def test_the_name_of_the_file_does_not_matter(tmp_path):
    assert told(read(tmp_path, PLAIN, "results.final.json")) == EXPECTED


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_what_an_editor_did_to_it_does_not_matter(tmp_path, begin, end):
    assert told(read(tmp_path, begin + PLAIN.replace("\n", end))) == EXPECTED


@pytest.mark.parametrize(
    ("row", "event", "value"),
    [
        ("5,,cycles,100,100.00,,", "cycles", 5),
        ("5,,cycles:u,100,100.00,,", "cycles", 5),
        ("5,,cycles:ppp,100,100.00,,", "cycles", 5),
        ("5,,cycles:uk,100,100.00,,", "cycles", 5),
        ("5,,cycles:k,100,100.00,,", "cycles:k", 5),
        ("5,,cpu/cycles/u,100,100.00,,", "cycles", 5),
        ("5,,sched:sched_switch,100,100.00,,", "sched:sched_switch", 5),
        ("5,,cpu_core/cycles/,100,100.00,,", "cpu_core cycles", 5),
        ("5,,cpu_atom/cycles/u,100,100.00,,", "cpu_atom cycles", 5),
        ("5,,cpu_atom__l1_miss,100,100.00,,", "cpu_atom l1_miss", 5),
        ("5,,armv8_pmuv3_0/br_mis_pred/,100,100.00,,", "armv8_pmuv3_0 br_mis_pred", 5),
        ("5.00,Joules,power/energy-pkg/,100,100.00,,", "energy-pkg", 5),
        ("5,,cstate_core/c6-residency/,100,100.00,,", "cstate_core/c6-residency/", 5),
        ("5.25,MiB,uncore_imc/cas_count_read/,100,100.00,,", "cas_count_read", 5.25),
        # a raw event holds the separator, with and without a name
        ("5,,cpu/event=0x29,umask=0x7,name=ls_dispatch.all/,100,100.00,,", "ls_dispatch.all", 5),
        ("5,,cpu/event=0x29,umask=0x7,name='ls_dispatch.all'/u,100,100.00,,", "ls_dispatch.all", 5),
        ("5,,l3/event=0x4,umask=0x1/,100,100.00,,", "l3/event=0x4,umask=0x1/", 5),
        ("5,,cpu/event=0x29,umask=0x7/,my.slice,100,33.18,,", "cpu/event=0x29,umask=0x7/", 5),
        # with -r the variance stands before the run time
        ("5,,cycles,2.25%,100,100.00,0.0,GHz", "cycles", 5),
        ("5,,cycles,my.slice,2.25%,100,100.00,0.0,GHz", "cycles", 5),
        # aggregation
        ("S0-D0-C1,2,5,,cycles,100,100.00,,", "cycles", 5),
        ("S0-D1,2,5,,cycles,100,100.00,,", "cycles", 5),
        ("S0,8,5,,cycles,100,100.00,,", "cycles", 5),
        ("N1,8,5,,cycles,100,100.00,,", "cycles", 5),
        ("CPU3,5,,cycles,100,100.00,,", "cycles", 5),
        ("python3.11 -c x-4711,5,,cycles,100,100.00,,", "cycles", 5),
        ("a,b-4711,5.00,msec,task-clock,100,100.00,,", "task-clock", 5),
        ("     1.000100000,S0,8,5,,cycles,100,100.00,,", "cycles", 5),
        ("123456.000100000,CPU0,5,,cycles,100,100.00,,", "cycles", 5),
        # older and newer ends of a row
        ("5,,cycles,100,100.00", "cycles", 5),
        ("5,(null),cycles,100,100.00,,(null)", "cycles", 5),
        ("5,,cycles,100,100.00,nan,GHz", "cycles", 5),
        ("5,,cycles,100,100.00,,,", "cycles", 5),
        ("nan,,cycles,100,100.00,,", "cycles", "not-counted"),
        ("0,,cycles,0,0.00,,", "cycles", "not-counted"),
        ("0,,cycles,0,100.00,,", "cycles", "not-counted"),
    ],
)
def test_a_row_is_read_in_every_shape(tmp_path, row, event, value):
    assert looks_like_stat_csv(row.encode())
    assert told(read(tmp_path, row + "\n")) == {event: value}


@pytest.mark.parametrize(
    "event",
    [
        "cycles",
        "instructions",
        "branches",
        "branch-misses",
        "cache-misses",
        "cache-references",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "L1-dcache-loads",
        "L1-dcache-load-misses",
        "L1-icache-load-misses",
        "r4f2e",
        "r01c4",
        "duration_time",
        "ref-cycles",
        "cpu-cycles",
        "branch-instructions",
        "cycles:u",
        "cpu_core/instructions/",
    ],
)
def test_zero_of_an_event_that_cannot_be_zero_is_a_dead_counter(tmp_path, event):
    (counter,) = read(tmp_path, f"0,,{event},5000,65.00,,\n").counters
    assert (counter.state, counter.value) == ("hard-zero", None)
    assert "cannot be" in counter.reason


@pytest.mark.parametrize(
    "event",
    [
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "major-faults",
        "emulation-faults",
        "system_time",
        "fp_arith_inst_retired.scalar_single",
        "LLC-load-misses",
        "mem_load_retired.l3_miss",
        "rounding-errors",
    ],
)
def test_zero_of_an_event_that_may_be_zero_is_a_count(tmp_path, event):
    (counter,) = read(tmp_path, f"0,,{event},5000,100.00,,\n").counters
    assert (counter.state, counter.value) == ("measured", 0)


def test_context_switches_counted_in_user_space_only_are_no_zero(tmp_path):
    # without rights perf asks for `context-switches:u`, which never happen there, and prints 0
    counters = read(tmp_path, "0,,context-switches:u,9,100.00,,\n0,,page-faults:u,9,100.00,,\n").counters
    assert [(c.state, c.value) for c in counters] == [("not-counted", None), ("measured", 0)]
    assert "only user space" in counters[0].reason


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ("9.00,msec,task-clock,9000,100.00,,\n5,,cycles,8910,99.00,,\n", 0.99),
        # 99.99 % is printed as 99.00
        ("9.00,msec,task-clock,100000,100.00,,\n5,,cycles,99990,99.00,,\n", 0.9999),
        ("9.00,msec,task-clock,100000,100.00,,\n5,,cycles,33500,33.00,,\n", 0.335),
        # the run time does not agree with the percentage: enabled for another time than the clock
        ("9.00,msec,task-clock,100000,100.00,,\n5,,cycles,10000,50.00,,\n", 0.50),
        ("5,,cycles,10000,50.00,,\n", 0.50),
        ("5,,cycles,10000,33.18,,\n", 0.3318),
        ("5,,cycles,10000,100.00,,\n", 1.0),
    ],
)
def test_the_share_of_a_multiplexed_event_is_as_fine_as_the_report_allows(tmp_path, rows, share):
    counter = read(tmp_path, rows).counters[-1]
    assert counter.share == pytest.approx(share, abs=1e-4)
    assert counter.state == ("measured" if share == 1 else "multiplexed")


def test_intervals_are_summed_and_their_shares_weighed(tmp_path):
    report = read(
        tmp_path,
        "     1.000000000,10,,cycles,1000,100.00,,\n     2.000000000,30,,cycles,500,50.00,,\n",
    )
    (counter,) = report.counters
    assert (counter.value, counter.share) == (40, pytest.approx(0.75))
    assert report.facts["intervals"] == "2"


def test_an_event_that_found_no_counter_in_some_intervals_says_so(tmp_path):
    rows = ""
    for second in range(1, 5):
        rows += f"     {second}.000000000,1.00,msec,task-clock,1000,100.00,,\n"
        rows += f"     {second}.000000000," + (
            "8,,cycles,1000,100.00,,\n" if second == 1 else "<not counted>,,cycles,0,0.00,,\n"
        )
    report = read(tmp_path, rows)
    cycles = report.counters[1]
    assert (cycles.state, cycles.share) == ("multiplexed", pytest.approx(0.25))
    assert any("no counter free for cycles" in warning for warning in report.warnings)


def test_threads_and_cpus_are_summed_and_idle_ones_do_not_spoil_the_sum(tmp_path):
    rows = "CPU0,5,,cycles,100,100.00,,\nCPU1,<not counted>,,cycles,0,0.00,,\nCPU2,7,,cycles,100,100.00,,\n"
    report = read(tmp_path, rows)
    assert told(report) == {"cycles": 12}
    assert report.facts["aggregation"] == "cpu"


def test_memory_controllers_of_one_kind_are_summed(tmp_path):
    rows = "".join(f"1.50,MiB,uncore_imc_{n}/cas_count_read/,100,100.00,,\n" for n in range(4))
    assert told(read(tmp_path, rows)) == {"cas_count_read": 6.0}


def test_both_kinds_of_core_stay_apart(tmp_path):
    rows = "5,,cpu_core/cycles/,100,100.00,,\n<not counted>,,cpu_atom/cycles/,0,0.00,,\n"
    assert told(read(tmp_path, rows)) == {"cpu_core cycles": 5, "cpu_atom cycles": "not-counted"}


def test_an_anchor_of_several_groups_is_not_summed(tmp_path):
    rows = "100,,cycles,50,50.00,,\n7,,a,50,50.00,,\n110,,cycles,50,50.00,,\n8,,b,50,50.00,,\n"
    report = read(tmp_path, rows)
    assert told(report) == {"cycles": 100, "a": 7, "b": 8}
    assert any("cycles was counted more than once; the counts differ by 9.1%" in w for w in report.warnings)


def test_one_cgroup_is_a_fact_and_several_are_told_apart(tmp_path):
    one = read(tmp_path, "5,,cycles,a.slice,100,100.00,,\n")
    assert (told(one), one.facts["cgroup"]) == ({"cycles": 5}, "a.slice")
    two = read(tmp_path, "5,,cycles,a.slice,100,100.00,,\n9,,cycles,a.slice/b,100,100.00,,\n")
    assert [(c.scope.name, c.value) for c in two.counters] == [("a.slice", 5), ("a.slice/b", 9)]


def test_the_variance_of_repeated_runs_is_not_taken_for_a_cgroup(tmp_path):
    report = read(tmp_path, "5,,cycles,2.25%,100,100.00,,\n9,,x,0.50%,100,100.00,,\n")
    assert "cgroup" not in report.facts
    assert {c.scope.name for c in report.counters} == {None}


def test_user_and_all_of_one_event_in_one_report_are_two_quantities(tmp_path):
    assert told(read(tmp_path, "9,,cycles,1,100.00,,\n5,,cycles:u,1,100.00,,\n")) == {
        "cycles": 9,
        "cycles:u": 5,
    }


@pytest.mark.parametrize("separator", ["|", ";", "\t"])
def test_a_decimal_comma_is_read_where_the_separator_is_another(tmp_path, separator):
    row = "63,40 msec task-clock 63395472 64,00 0,602".replace(" ", separator)
    (counter,) = read(tmp_path, row + "\n").counters
    assert (counter.value, counter.share) == (63.40, pytest.approx(0.64))


def test_a_decimal_comma_between_commas_is_refused_with_the_way_out(tmp_path):
    text = "63,40,msec,task-clock,63395472,100,00,0,602,CPUs utilized\n"
    text += "80114687,,cycles,40665932,64,00,1,264,GHz\n"
    with pytest.raises(UnreadableReport, match="holds no counts") as caught:
        read(tmp_path, text)
    assert "LC_ALL=C" in caught.value.fix


def test_metric_lines_and_metric_groups_are_no_events(tmp_path):
    rows = "5,,cycles,100,100.00,,\n,225849327050,100.00,,,,TopdownL1\n,,,,,70.1,%  tma_backend_bound\n"
    rows += ",10188319019,63.00,,,41.3,%  tma_frontend_bound\n,,,,,,%  tma_retiring\n"
    report = read(tmp_path, rows)
    assert told(report) == {"cycles": 5}
    assert report.warnings == ()


def test_the_programs_own_output_in_between_is_passed_over_and_said(tmp_path):
    report = read(tmp_path, "hello, world\n5,,cycles,100,100.00,,\nloss: 0.25, 17, done\n")
    assert told(report) == {"cycles": 5}
    assert report.warnings == ("passed over 2 lines that are not of perf stat",)


def test_a_cut_off_last_line_is_said_and_the_rest_is_kept(tmp_path):
    report = read(tmp_path, "5,,cycles,100,100.00,,\n9,,instruct")
    assert told(report) == {"cycles": 5}
    assert report.warnings == ("the last line is cut off; what stands before it was read",)


def test_a_last_line_without_its_newline_is_whole_when_its_percentage_is(tmp_path):
    assert told(read(tmp_path, "5,,cycles,100,100.00")) == {"cycles": 5}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("# started on Mon Jan  5 10:00:00 2026\n\n", "holds no counts"),
        ("hello\n", "holds no counts"),
        (b"\x7fELF\0\0\0", "binary"),
        (b"PERFILE2" + bytes(64), "binary"),
        ("x" * 100_000, "longer than 64 KiB"),
        (",,,,,70.1,%  tma_backend_bound\n", "holds no counts"),
        ("event syntax error: 'nosuch'\n   \\___ parser error\n", "this perf does not know the event nosuch"),
        ("{}\n", "holds no counts"),
        ("\xff\xfe\xfd\n", "holds no counts"),
    ],
)
def test_what_holds_no_counts_is_refused_in_a_sentence(tmp_path, content, words):
    with pytest.raises(UnreadableReport, match=words):
        read(tmp_path, content)


def test_a_missing_file_and_a_folder_are_refused_in_a_sentence(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UnreadableReport, match="cannot be read"):
            read_stat_csv(path)
