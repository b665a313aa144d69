"""Every error text of perf that is known, with what it means and the line that fixes it."""

import pytest

from profkit.profilers.perf.command import explain, known_faults

LIMITED = """Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
"""
TEXTS = [
    (LIMITED, 255, "does not let this user", "perf_event_paranoid=1"),
    (LIMITED, 255, "does not let this user", "--cap-add PERFMON"),
    ("Error:\nYou may not have permission to collect system-wide stats.\n", 255, "does not let", "paranoid"),
    (
        "event syntax error: 'nosuch'\n \\___ parser error\n",
        129,
        "does not know the event nosuch",
        "raw encoding",
    ),
    ("event syntax error: '{0}{x}'", 129, "{0}{x}", ""),
    (
        "event syntax error: 'uncore_imc/x/'\n \\___ Cannot find PMU `uncore_imc'.\n",
        129,
        "no PMU called uncore_imc",
        "",
    ),
    (
        "event syntax error: 'l3/x/'\n \\_ Unable to find PMU or event on a PMU of 'l3'\n",
        129,
        "no PMU called l3",
        "",
    ),
    ("Cannot find metric or group `TopdownL1'\n", 129, "no metric TopdownL1", "events"),
    ("top down event configuration requires system-wide mode (-a)\n", 234, "whole machine", "--topdown"),
    (
        "WARNING: perf not found for kernel 6.8.0-31\n\n  You may need\n",
        2,
        "no perf for kernel 6.8.0-31",
        "linux-tools",
    ),
    ("failed to mmap with 1 (Operation not permitted)\n", 255, "locked memory", "perf_event_mlock_kb"),
    ("mmap failed: Operation not permitted", 255, "locked memory", "sysctl kernel.perf_event_mlock_kb=2048"),
    ("Workload failed: No such file or directory\n", 255, "could not start the workload", ""),
    ("Workload failed: Permission denied\n", 255, "not executable", ""),
    ("error, jitted code must be sampled with perf record -k 1\n", 1, "monotonic", "-k 1"),
    ("Error: unknown switch `x'\n", 129, "option x", "newer perf"),
    ("failed to write perf data, error: No space left on device\n", 255, "disk is full", ""),
    ("", -9, "was killed", ""),
    ("", 137, "was killed", ""),
    ("<not supported>||cycles|0|100.00||\n0.56|msec|task-clock|1|100.00||\n", 0, "no hardware counters", ""),
    (
        "<not supported>,,cycles,0,100.00,,\n0.56,msec,task-clock,560261,100.00,0.002,CPUs\n",
        0,
        "no hardware cou",
        "",
    ),
    (
        "      0.52 msec task-clock     #    0.450 CPUs\n   <not supported>      cycles\n",
        0,
        "no hardware count",
        "",
    ),
]


@pytest.mark.parametrize(("text", "code", "reason", "fix"), TEXTS)
def test_an_error_text_is_explained_with_the_line_that_fixes_it(text, code, reason, fix):
    fault = explain(text, code)
    assert fault is not None
    assert reason in fault.reason
    assert fix in (fault.fix or "")


def test_what_is_no_fault_is_not_explained_and_no_fix_runs_sudo_by_itself():
    for text in ("", "all good", "5,,cycles,1,100.00,,", "Events enabled\nEvents disabled\n"):
        assert explain(text, 0) is None
    assert "sudo" not in "".join(known.fix or "" for known in known_faults())


def test_the_recorded_error_texts_are_explained(fixtures):
    folder = fixtures / "perf/vm-without-pmu-perf6.1"
    refused = (folder / "error.paranoid2-nobody-a.txt").read_text()
    assert "does not let this user" in explain(refused, 255).reason
    blocks = (folder / "errors.txt").read_text().split("event syntax error")[1:]
    for block, words in zip(
        blocks, ("not know the event nosuch_event", "no PMU called uncore_imc"), strict=True
    ):
        assert words in explain("event syntax error" + block.partition("Run 'perf list'")[0], 129).reason
