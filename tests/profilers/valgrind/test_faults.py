"""What valgrind prints when something is wrong, and what that means."""

from __future__ import annotations

import pytest

from profkit.profilers.valgrind.command import explain

AVX512 = """\
vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48 0x10 0x7 0x62 0xF1 0x74 0x48
==12== valgrind: Unrecognised instruction at address 0x109136.
==12== Your program just tried to execute an instruction that Valgrind
==12== did not recognise.
==12== Process terminating with default action of signal 4 (SIGILL)
==12==  Illegal opcode at address 0x109136
"""
OTHER_OPCODE = AVX512.replace("0x62 0xF1 0x7C 0x48", "0xF 0xB 0x7C 0x48")
NO_TOOL = "valgrind: failed to start tool 'callgrind' for platform 'amd64-linux': No such file or directory"
STRIPPED = """\
valgrind:  Fatal error at startup: a function redirection
valgrind:  which is mandatory for this platform-tool combination
valgrind:  cannot be set up.  Details of the redirection are:
valgrind:  A must-be-redirected function
valgrind:  whose name matches the pattern:      strlen
valgrind:  in an object with soname matching:   ld-linux-x86-64.so.2
"""
NO_MEMORY = "valgrind: mmap(0x38000000, 2097152) failed in UME with error 12 (Cannot allocate memory)."
BAD_CACHE = "valgrind: Bad option: --LL=37748736,12,64\nCache set count is not a power of two."


@pytest.mark.parametrize(
    ("text", "returncode", "reason", "fix"),
    [
        (AVX512, -4, "no AVX-512", "haswell"),
        (OTHER_OPCODE, -4, "does not know", "newer valgrind"),
        (NO_TOOL, 1, "no callgrind", "apt-get install"),
        (STRIPPED, 1, "stripped", "libc6-dbg"),
        (NO_MEMORY, 1, "no memory", "ulimit"),
        (BAD_CACHE, 1, "geometry", None),
        (
            "valgrind: the 'impossible' happened:\n   LibVEX called failure_exit().",
            1,
            "itself failed",
            "newer",
        ),
        ("valgrind: ./nope: command not found", 127, "could not start", None),
        ("", -9, "SIGKILL", "memory"),
        ("", 137, "SIGKILL", "memory"),
    ],
)
def test_known_faults(text: str, returncode: int, reason: str, fix: str | None) -> None:
    fault = explain(text, returncode)
    assert fault is not None
    assert reason in fault.reason
    assert (fix is None) if fault.fix is None else (fix is None or fix in fault.fix)


@pytest.mark.parametrize(
    ("text", "returncode"),
    [("all is well", 0), ("Traceback (most recent call last):\nValueError: no", 1), ("", 3), (AVX512, 0)],
)
def test_the_workloads_own_failure_is_not_valgrinds(text: str, returncode: int) -> None:
    assert explain(text, returncode) is None
