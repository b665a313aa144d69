"""What valgrind's error texts mean, and the line that fixes each. Texts of valgrind 3.19 to 3.24."""

from __future__ import annotations

from profkit.core.errors import Fault
from profkit.profilers.faults import first_known, known_fault

INSTALL = "apt-get install valgrind   (or: dnf install valgrind, apk add valgrind)"


# First match wins: what ended the program stands before what merely followed from it.
FAULTS = (
    known_fault(
        r"unhandled instruction bytes: 0x62|unrecognised instruction.*\n.*0x62",
        "valgrind has no AVX-512, and the workload uses it without asking the processor first",
        "build the workload for AVX2 (-march=haswell), or unset what forces AVX-512 (OPENBLAS_CORETYPE, "
        "MKL_ENABLE_INSTRUCTIONS, ONEDNN_MAX_CPU_ISA)",
    ),
    known_fault(
        r"unhandled instruction|did not recogni[sz]e|Illegal opcode|signal 4 \(SIGILL\)",
        "the workload executed an instruction that this valgrind does not know",
        "install a newer valgrind, or build the workload for an older processor (-march=haswell)",
    ),
    known_fault(
        r"failed to start tool '?([\w-]+)'?",
        "this valgrind has no callgrind for the workload's architecture",
        f"reinstall it: {INSTALL}",
    ),
    known_fault(
        r"function redirection|must-be-redirected function",
        "valgrind needs the symbols of ld.so, and this system has it stripped",
        "apt-get install libc6-dbg   (or: dnf debuginfo-install glibc, apk add musl-dbg)",
    ),
    known_fault(
        r"mmap\(.*\) failed in UME|out of memory|Cannot allocate memory|memory management: .*failed",
        "valgrind found no memory: it needs several times the workload's, and much address space",
        "lift the limit (ulimit -v unlimited), or make the workload smaller",
    ),
    known_fault(
        r"VG_N_SEGMENTS|too many segments|--max-threads|VG_N_THREADS",
        "the workload has more threads or memory mappings than valgrind can hold",
        "run it with fewer threads",
    ),
    known_fault(
        r"setuid executable|Can't execute setuid",
        "valgrind cannot follow a setuid program (sudo, su)",
        "profile the program itself: put sudo in front of profkit, not behind it",
    ),
    known_fault(
        r"wrong ELF executable class|wrong (?:executable )?architecture",
        "this valgrind is for another architecture than the workload",
        INSTALL,
    ),
    known_fault(
        r"can'?t (?:open|create).*(?:output|callgrind|profile)|error: can not open",
        "callgrind could not write its file",
        "choose a writable folder with --output",
    ),
    known_fault(
        r"set count is not a power of two|Cache line size|cache size is",
        "valgrind cannot simulate a cache of this geometry",
    ),
    known_fault(
        r"the 'impossible' happened|Assertion '.*' failed|valgrind internal",
        "valgrind itself failed",
        "install a newer valgrind; 3.21 and later know more instructions and newer debug information",
    ),
    known_fault(
        r"valgrind: (.+): (?:command not found|No such file or directory|Permission denied)",
        "valgrind could not start the workload: no such program, or it is not executable",
    ),
)

_KILLED = Fault(
    "the simulation was killed (SIGKILL), most often by the kernel when memory ran out",
    "make the workload smaller, or give the container more memory",
)


def explain(text: str, returncode: int) -> Fault | None:
    """What went wrong, from what valgrind and the workload printed; None where it is not valgrind's."""
    if returncode == 0:
        return None
    if (fault := first_known(FAULTS, text)) is not None:
        return fault
    if returncode in (-9, 137):
        return _KILLED
    if returncode in (-4, 132):
        return Fault(FAULTS[1].reason, FAULTS[1].fix)
    return None
