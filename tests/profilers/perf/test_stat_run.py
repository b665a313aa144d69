"""perf itself: it accepts the command, its file is what the reader reads, and its abilities are found out."""

import os
import signal
import stat
import subprocess

import pytest

from profkit.core.process import read_status, run, status_wrapper
from profkit.core.types import Counter, Fact, Report
from profkit.profilers.perf.command import STAT_ENV, explain, known_faults, stat_argv
from profkit.profilers.perf.events import anchor_drift, merge_groups
from profkit.profilers.perf.probe import (
    find_perf,
    find_refused_events,
    probe_perf,
)
from profkit.profilers.perf.stat_csv import read_stat_csv
from tests.spoken import spoken, spoken_lines

# ------------------------------------------------------------ the command


def test_the_command_names_its_file_and_separator_and_keeps_the_workload_apart():
    argv = stat_argv(("python", "a b.py", "-e", "x"), "out.csv", ("cycles", "cpu/event=0x29,umask=0x7/"))
    assert argv[:6] == ("perf", "stat", "-x", "|", "-o", "out.csv")
    assert argv[6:10] == ("-e", "cycles", "-e", "cpu/event=0x29,umask=0x7/")
    assert argv[10:] == ("--", "python", "a b.py", "-e", "x")
    assert STAT_ENV["LC_ALL"] == "C"


def test_a_region_is_switched_through_two_pipes_and_system_wide_events_are_of_the_whole_machine():
    argv = stat_argv(("x",), "out", ("cycles",), control="/f/ctl", ack="/f/ack")
    assert argv[argv.index("-D") + 1] == "-1"
    assert argv[argv.index("--control") + 1] == "fifo:/f/ctl,/f/ack"
    assert "-a" not in argv
    assert "-a" in stat_argv(("x",), "out", ("uncore_imc/cas_count_read/",))


# ------------------------------------------------------------ how the workload ended


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -11 $$", -11), ("/no/such", 127)],
)
def test_the_workloads_own_end_is_told_through_a_file(tmp_path, script, status):
    file = tmp_path / "my status"
    subprocess.run(status_wrapper(("sh", "-c", script), file), stderr=subprocess.DEVNULL, check=False)
    assert read_status(file) == status


def test_arguments_with_blanks_quotes_and_dollars_reach_the_workload_unchanged(tmp_path):
    words = ("a b", "$HOME", "'\"", "", "*", "-x", "\\n")
    argv = status_wrapper(("sh", "-c", 'printf "%s|" "$@"', "sh", *words), tmp_path / "s")
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "|".join(words) + "|"


def test_an_interrupt_reaches_the_workload_and_its_end_is_still_written(tmp_path):
    script = "trap 'exit 42' INT; echo ready; while :; do sleep 0.05; done"
    argv = status_wrapper(("sh", "-c", script), tmp_path / "s")
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout.readline() == b"ready\n"
    os.killpg(child.pid, signal.SIGINT)
    child.wait(timeout=60)
    child.stdout.close()
    assert read_status(tmp_path / "s") == 42


# ------------------------------------------------------------ perf itself


@pytest.mark.perf
@pytest.mark.parametrize(
    "options",
    [("-x,",), ("-x;",), ("-x\\t",), ("-x|", "-r", "2"), ("-x,", "-A", "-a"), ("-x,", "-I", "10")],
)
def test_perf_of_this_machine_is_read_with_any_option(tmp_path, options):

    out = tmp_path / "out"
    argv = (
        "perf",
        "stat",
        *options,
        "-o",
        str(out),
        "-e",
        "task-clock,page-faults,cycles",
        "--",
        "sh",
        "-c",
        "sleep 0.03",
    )
    outcome = run(argv, env=STAT_ENV)
    if not outcome.ok:
        pytest.skip(f"perf refuses {options}: {outcome.output_tail[:80]}")
    counters = {c.name: c for c in read_stat_csv(out).counters}
    assert set(counters) == {"task-clock", "page-faults", "cycles"}
    assert counters["task-clock"].value > 0
    assert counters["page-faults"].value > 10


@pytest.mark.perf
def test_the_probe_finds_out_what_perf_can_do_by_doing_it():
    ability = probe_perf()
    assert ability.path is not None
    assert ability.software_ok
    assert ability.record_ok
    assert ability.control_fifo_ok
    assert ability.rights == (-1 if ability.system_wide_ok else ability.paranoid)
    assert {c.name for c in ability.census} >= {"cycles", "instructions"}
    assert ability.hardware_ok == ({"cycles", "instructions"} <= set(ability.counting))
    assert (ability.fault, ability.record_fault) == (None, None)


@pytest.mark.perf
def test_an_event_that_is_refused_does_not_take_its_group_with_it():
    groups = (("page-faults", "nosuch_event"), ("nosuchpmu/event=4/",))
    refused = find_refused_events("perf", groups)
    assert set(refused) == {"nosuch_event", "nosuchpmu/event=4/"}
    assert {(counter.state, counter.value) for counter in refused.values()} == {("not-supported", None)}
    assert "nosuch_event" in spoken(refused["nosuch_event"].reason)
    assert "nosuchpmu" in spoken(refused["nosuchpmu/event=4/"].reason)


# ------------------------------------------------------------ where perf is


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


WRAPPER = "echo 'WARNING: perf not found for kernel 6.8.0-31' >&2; exit 2"


def test_a_wrapper_without_a_perf_for_this_kernel_gives_way_to_the_newest_perf_installed(
    tmp_path, monkeypatch
):
    script(tmp_path / "bin/perf", WRAPPER)
    monkeypatch.setattr("profkit.profilers.programs.BESIDE_PYTHON", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for version in ("5.15.0-99", "5.15.0-101", "5.4.0-200"):
        script(tmp_path / f"usr/lib/linux-tools-{version}/perf", f"echo perf version {version}")
    script(tmp_path / "usr/lib/linux-tools-6.8.0-1/perf", "exit 1")  # newest, and broken
    found = find_perf(tmp_path)
    assert (found.version, found.reason) == ("5.15.0-101", None)
    assert found.path == tmp_path / "usr/lib/linux-tools-5.15.0-101/perf"


def test_no_perf_at_all_says_so_with_the_package(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("profkit.profilers.programs.BESIDE_PYTHON", tmp_path)
    found = find_perf(tmp_path)
    assert (found.path, spoken(found.reason)) == (None, "perf is not installed")
    assert "apt-get install" in found.fix
    ability = probe_perf() if not list(tmp_path.parent.glob("usr/lib/linux-tools*")) else None
    assert ability is None or ability.path is None or ability.path.startswith("/usr/lib/linux-tools")


# The exit code and what perf prints; a part of what it means, and a part of what mends it.
TOLD = r"""
255 | Error:\nAccess to performance monitoring and observability operations is limited.\n
  does not let this user | perf_event_paranoid=1
255 | Error:\nAccess to performance monitoring and observability operations is limited.\n
  does not let this user | --cap-add PERFMON
255 | Error:\nYou may not have permission to collect system-wide stats.\n
  does not let | paranoid
129 | event syntax error: 'nosuch'\n \\___ parser error\n
  does not know the event nosuch | raw encoding
129 | event syntax error: '{0}{x}'
  {0}{x} |
129 | event syntax error: 'uncore_imc/x/'\n \\___ Cannot find PMU `uncore_imc'.\n
  no PMU called uncore_imc |
129 | event syntax error: 'l3/x/'\n \\_ Unable to find PMU or event on a PMU of 'l3'\n
  no PMU called l3 |
129 | Cannot find metric or group `TopdownL1'\n
  no metric TopdownL1 | events
234 | top down event configuration requires system-wide mode (-a)\n
  whole machine | --topdown
2 | WARNING: perf not found for kernel 6.8.0-31\n\n  You may need\n
  no perf for kernel 6.8.0-31 | linux-tools
255 | failed to mmap with 1 (Operation not permitted)\n
  locked memory | perf_event_mlock_kb
255 | mmap failed: Operation not permitted
  locked memory | sysctl kernel.perf_event_mlock_kb=2048
255 | Workload failed: No such file or directory\n
  could not start the workload |
255 | Workload failed: Permission denied\n
  not executable |
1 | error, jitted code must be sampled with perf record -k 1\n
  monotonic | -k 1
129 | Error: unknown switch `x'\n
  option x | newer perf
255 | failed to write perf data, error: No space left on device\n
  disk is full |
-9 |
  was killed |
137 |
  was killed |
0 | <not supported>||cycles|0|100.00||\n0.56|msec|task-clock|1|100.00||\n
  no hardware counters |
0 | <not supported>,,cycles,0,100.00,,\n0.56,msec,task-clock,560261,100.00,0.002,CPUs\n
  no hardware cou |
0 |       0.52 msec task-clock     #    0.450 CPUs\n   <not supported>      cycles\n
  no hardware count |
"""
TEXTS = list(zip(*[iter(TOLD.strip().splitlines())] * 2, strict=True))


@pytest.mark.parametrize(("printed", "told"), TEXTS)
def test_an_error_text_is_explained_with_the_line_that_fixes_it(printed, told):
    code, _, text = printed.partition(" |")
    reason, _, fix = told.strip().partition(" |")
    fault = explain(text.strip().replace("\\n", "\n").replace("\\\\", "\\"), int(code))
    assert fault is not None
    assert reason in fault.reason
    assert fix.strip() in (fault.fix or "")


def test_what_is_no_fault_is_not_explained_and_no_fix_runs_sudo_by_itself():
    for text in ("", "all good", "5,,cycles,1,100.00,,", "Events enabled\nEvents disabled\n"):
        assert explain(text, 0) is None
    assert "sudo" not in "".join(known.fix or "" for known in known_faults())


def test_the_recorded_error_texts_are_explained(reports):
    folder = reports / "perf/vm-without-pmu-perf6.1"
    refused = (folder / "error.paranoid2-nobody-a.txt").read_text()
    assert "does not let this user" in explain(refused, 255).reason
    blocks = (folder / "errors.txt").read_text().split("event syntax error")[1:]
    for block, words in zip(
        blocks, ("not know the event nosuch_event", "no PMU called uncore_imc"), strict=True
    ):
        assert words in explain("event syntax error" + block.partition("Run 'perf list'")[0], 129).reason


DEAD = Counter("instructions", None, "not-supported")


def counted(name, value, share=1.0, pmu=None):
    return Counter(name, value, "measured" if share >= 1 else "multiplexed", share=share, pmu=pmu)


def group(*counters, warnings=()):
    return Report("perf", "perf-stat-csv", counters=counters, warnings=warnings)


def test_without_instructions_the_cycles_are_the_anchor_and_kinds_of_core_are_added():
    assert anchor_drift([[DEAD, counted("cycles", 100)], [DEAD, counted("cycles", 200)]]) == 0.5
    moved = [
        [counted("instructions", n, pmu="cpu_core"), counted("instructions", 1000 - n, pmu="cpu_atom")]
        for n in (900, 500)
    ]
    assert anchor_drift(moved) == 0


def test_merged_groups_hold_each_counter_once_with_the_middle_of_its_counts():
    merged = merge_groups(
        [
            group(
                counted("cycles", 100),
                counted("instructions", 300),
                counted("branches", 7),
                warnings=(Fact("last-line-cut"),),
            ),
            group(
                counted("cycles", 102),
                counted("instructions", 300),
                counted("LLC-loads", 9),
                warnings=(Fact("last-line-cut"),),
            ),
            group(counted("cycles", 190), counted("instructions", 301), counted("LLC-load-misses", 2)),
        ]
    )
    values = {"cycles": 102, "instructions": 300, "branches": 7, "LLC-loads": 9, "LLC-load-misses": 2}
    assert {c.name: c.value for c in merged.counters} == values
    assert (len(merged.groups), spoken_lines(merged.warnings)) == (
        3,
        ("the last line is cut off; everything before it was read",),
    )


def test_a_count_that_was_on_all_the_time_beats_others_and_one_that_never_counted_keeps_its_state():
    never = Counter("cycles", None, "not-counted")
    merged = merge_groups([group(counted("cycles", 5, 0.3)), group(counted("cycles", 9)), group(never)])
    assert [(c.value, c.state) for c in merged.counters] == [(9, "measured")]
    assert [(c.value, c.state) for c in merge_groups([group(DEAD)] * 2).counters] == [(None, "not-supported")]
    assert merge_groups([group(counted("a", n), counted("b", n)) for n in (1, 2, 3)]).groups == (("a", "b"),)
    assert merge_groups([]).counters == ()
