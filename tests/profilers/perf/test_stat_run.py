"""perf itself: it accepts the command, its file is what the reader reads, and its abilities are found out."""

import os
import signal
import stat
import subprocess

import pytest

from profkit.core.process import run
from profkit.core.status import read_status, status_wrapper
from profkit.profilers.perf.command import STAT_ENV, stat_argv
from profkit.profilers.perf.probe import (
    find_perf,
    find_refused_events,
    probe_perf,
)
from profkit.profilers.perf.stat_csv import read_stat_csv

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


@pytest.mark.parametrize("content", [None, b"", b"x", b"-5", b"999", b"\xff\0", b"7" * 100])
def test_a_file_without_a_status_says_nothing(tmp_path, content):
    if content is not None:
        (tmp_path / "s").write_bytes(content)
    assert read_status(tmp_path / "s") is None


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
    [("-j",), ("-x,",), ("-x;",), ("-x\\t",), ("-x|", "-r", "2"), ("-x,", "-A", "-a"), ("-x,", "-I", "10")],
)
def test_perf_of_this_machine_is_read_with_any_option(tmp_path, options):
    from profkit.profilers.perf import stat_text

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
    reader = stat_text.read_stat_json if options == ("-j",) else read_stat_csv
    counters = {c.name: c for c in reader(out).counters}
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
    assert "nosuch_event" in refused["nosuch_event"].reason
    assert "nosuchpmu" in refused["nosuchpmu/event=4/"].reason


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
    assert (found.path, found.reason) == (None, "perf is not installed")
    assert "apt-get install" in found.fix
    ability = probe_perf() if not list(tmp_path.parent.glob("usr/lib/linux-tools*")) else None
    assert ability is None or ability.path is None or ability.path.startswith("/usr/lib/linux-tools")
