"""What perf's error texts mean, and the one line that fixes each.

Nothing here runs anything: a line is printed for the user, since sudo is missing in most containers.
"""

from __future__ import annotations

import re

from profkit.core.errors import Fault
from profkit.profilers.faults import first_known, known_fault

PARANOID_FIX = "sysctl kernel.perf_event_paranoid=1   (as root; in a container: docker run --cap-add PERFMON)"
NO_PMU_FIX = "use a machine that shows its PMU: bare metal, or a guest with host-passthrough; else simulate"


# The most telling first: an error of permissions also prints that its event could not be opened.
FAULTS = (
    known_fault(
        r"perf not found for kernel (\S+)",
        "the perf that is installed is a wrapper that has no perf for kernel {0}",
        "apt-get install linux-tools-$(uname -r)",
    ),
    known_fault(
        r"perf_event_open\S* (?:system call|syscall)? ?failed.*\(Function not implemented\)|"
        r"syscall returned with 38",
        "the container's seccomp profile blocks perf_event_open",
        "docker run --security-opt seccomp=unconfined --cap-add PERFMON",
    ),
    known_fault(
        r"Access to performance monitoring and observability operations is limited",
        "the kernel does not let this user count that (kernel events or all CPUs)",
        PARANOID_FIX,
    ),
    known_fault(
        r"You may not have permission to collect (system-wide )?stats|"
        r"Permission error mapping pages|Consider tweaking /proc/sys/kernel/perf_event_paranoid",
        "the kernel does not let this user count that",
        PARANOID_FIX,
    ),
    known_fault(
        r"top ?down event configuration requires system-wide mode",
        "perf's --topdown works on the whole machine only on this CPU",
        "do not use --topdown",
    ),
    known_fault(
        r"(?:Cannot find PMU [`']([^`'\n]+)'|Unable to find PMU or event on a PMU of '([^'\n]+)')",
        "this kernel shows no PMU called {0}, so its events cannot be counted",
        None,
    ),
    known_fault(
        r"Cannot find metric or group [`']([^`'\n]+)'",
        "perf has no metric {0} for this CPU",
        "ask for events instead of metrics",
    ),
    known_fault(
        r"event syntax error: '([^'\n]*)",
        "this perf does not know the event {0}",
        "use the raw encoding of the event, or a newer perf",
    ),
    known_fault(
        r"jitted code must be sampled with perf record -k 1",
        "code that was made while running needs the monotonic clock in the recording",
        "perf record -k 1",
    ),
    known_fault(
        r"mmap failed|failed to mmap|Cannot allocate memory.*mlock|try (?:again )?with a smaller value of -m",
        "the kernel allows this user too little locked memory for perf's buffers",
        "sysctl kernel.perf_event_mlock_kb=2048",
    ),
    known_fault(
        r"Workload failed: No such file or directory",
        "perf could not start the workload: no such file or command",
        None,
    ),
    known_fault(
        r"Workload failed: Permission denied",
        "perf could not start the workload: it is not executable",
        None,
    ),
    known_fault(
        r"Workload failed: ([^\n]+)",
        "perf could not start the workload: {0}",
        None,
    ),
    known_fault(
        r"unknown (?:switch|option) `([^'\n]+)'",
        "this perf does not know the option {0}",
        "install a newer perf",
    ),
    known_fault(
        r"(?:Failed to open|failed to open|couldn't open) (?:the )?(?:control )?fifo",
        "perf could not open the pipe through which a region switches it",
        None,
    ),
    known_fault(
        r"PMU Hardware doesn't support sampling/overflow-interrupts|"
        r"The (?:sys_perf_event_open\(\) syscall returned with|\S+ event is not supported)|"
        r"No (?:hardware|permission)? ?(?:sampling|PMU) interrupts? available",
        "this machine has no hardware counters that perf could use",
        NO_PMU_FIX,
    ),
    known_fault(
        r"No space left on device",
        "the disk is full, so perf could not write its file",
        "df -h",
    ),
)
_HARDWARE = re.compile(
    r"<not supported>[\s|,;]*(?:cycles|instructions|branches|branch-misses|cache-\w+)\b", re.IGNORECASE
)
_COUNTED_CLOCK = re.compile(r"\d[\d.,]*[\s|,;]*(?:msec)?[\s|,;]+(?:task|cpu)-clock\b")


def explain(text: str, returncode: int) -> Fault | None:
    """The fault that perf printed as `text` before it ended with `returncode`; None where it is not known."""
    if (fault := first_known(FAULTS, text)) is not None:
        return fault
    if _HARDWARE.search(text) and _COUNTED_CLOCK.search(text):
        return Fault("this machine shows no hardware counters (a virtual machine without a PMU)", NO_PMU_FIX)
    if returncode in (-9, 137):
        return Fault("perf was killed (SIGKILL), most often for want of memory", None)
    return None
