"""Builds perf's command lines, the only place with its flags, and explains its errors.

Tried on perf 6.1, CPython 3.12 and 3.13.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from profkit.core.errors import Fault, UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import Fact
from profkit.profilers.faults import KnownFault, first_known, load_faults
from profkit.profilers.files import reading
from profkit.profilers.perf.events import is_system_wide

Event = Literal["cycles", "cpu-clock"]  # cycles needs a PMU; cpu-clock is a timer and works in every VM
CallGraph = Literal["fp", "dwarf"]

FREQUENCY = 997  # Hz; prime, so that it does not beat with anything that ticks 100 or 1000 times a second
# Copied per sample for dwarf. Whole stacks at 8 / 16 / 32 KiB, CPython 3.13: 96 / 98 / - % of a json
# benchmark, 9 / 15 / 31 % of a recursion 80 calls deep; each doubling doubles the recording.
STACK_BYTES = 16384
# Records of switches that become text: 0.2 s of perf, 2 s of reading. A program that switches 50,000 times a second
# leaves them in 10 s, and so long a part of it tells where it waits.
MAX_SWITCHES = 1_000_000
DEPTH = 512  # frames; the default of perf script, 127, cuts 40 nested Python calls (3 native frames each)

# perf copies every binary it met into ~/.debug: 75 MB after one short Python run. It is not needed to read
# the recording on the machine that made it, and /dev/null makes perf keep no such cache (perf-config).
_NO_CACHE = ("--buildid-dir", "/dev/null")
# A thread of perf record listens for BPF programs, and looks up once a second: perf ends up to a second after the
# workload. The option came with that thread.
_NO_LISTENER, _LISTENER_SINCE = "--no-bpf-event", (5, 1)


@dataclass(frozen=True)
class PythonFrames:
    """How to get an interpreter's frames: environment of the workload, kind of stack, and what follows.

    `inject`: run inject_argv between recording and perf script. `note` tells the user what to expect.
    """

    note: Fact
    env: Mapping[str, str] = field(default_factory=dict)
    call_graph: CallGraph = "dwarf"
    inject: bool = False


def python_frames(version: tuple[int, int] | None) -> PythonFrames:
    """Return what to do for a workload in Python `version`; None stands for a native program."""
    if version is None:
        return PythonFrames(Fact("native-frames"))
    name = f"Python {version[0]}.{version[1]}"
    if version < (3, 12):
        return PythonFrames(Fact.of("no-python-frames", name=name))
    if version >= (3, 13):
        note = Fact("native-and-python-frames")
        return PythonFrames(note, {"PYTHON_PERF_JIT_SUPPORT": "1"}, "dwarf", inject=True)
    return PythonFrames(Fact.of("frame-pointers-only", name=name), {"PYTHONPERFSUPPORT": "1"}, "fp")


def record_argv(
    workload: Sequence[str],
    output: Path,
    *,
    event: Event,
    call_graph: CallGraph | None,
    control: Path | str | None = None,
    ack: Path | str | None = None,
    perf: str = "perf",
    frequency: int = FREQUENCY,
    options: Sequence[str] = (),
    switches: bool = False,
) -> tuple[str, ...]:
    """Return the command that records `workload` into `output` (perf.data).

    Without stacks where `call_graph` is None. `options` are those of `record_options`. With `switches`, a sample
    is also taken where a thread gives up the processor, at most as often as by the event, and each time at which
    one gives it up or gets it is noted.

    With `control` (a fifo that exists), events start disabled and the workload switches them; `ack` answers it.
    Cost of dwarf: STACK_BYTES x `frequency` per second and running thread (16 MB/s as given here) on disk, and
    perf 6.1 turns it into text at 30 to 50 MB/s. Those copies of the stack hold the process's environment and
    arguments, so a dwarf recording is not to be handed on: keep the text, remove `output`. No shell may stand
    around `workload`: perf 6.1 unwinds through a library by the lowest place at which a process or the one that
    forked it has it, so that half of the runs, by their random addresses, have no callers. perf ends as the
    workload does. The clock (-k 1, CLOCK_MONOTONIC) is the one in which CPython stamps its functions; perf inject
    insists on it.
    """
    argv = [perf, *_NO_CACHE, "record", "-q", *options, "-k", "1", "-F", str(frequency), "-e", event]
    if switches:
        argv += ["-e", "context-switches", "--switch-events"]
    if call_graph is not None:
        argv += ["--call-graph", f"dwarf,{STACK_BYTES}" if call_graph == "dwarf" else "fp"]
    if control is not None:
        fifos = str(control) if ack is None else f"{control},{ack}"
        argv += ["-D", "-1", "--control", f"fifo:{fifos}"]
    return (*argv, "-o", str(output), "--", *workload)


def record_options(version: str | None) -> tuple[str, ...]:
    """Return the options with which perf record of this version ends as soon as the workload."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version or "")[:2])
    return (_NO_LISTENER,) if numbers >= _LISTENER_SINCE else ()


def attach_argv(
    pid: int,
    seconds: float,
    output: Path,
    *,
    clock: bool,
    perf: str,
    options: Sequence[str] = (),
    switches: bool = False,
) -> tuple[str, ...]:
    """Return the command that records a running process, and what it starts meanwhile, for `seconds`.

    With `clock` it samples by a timer, for machines without a PMU.
    """
    frequency = max(
        49, min(FREQUENCY, int(5_000 / seconds))
    )  # a share of 10 % is known to a twentieth of itself
    event: Event = "cpu-clock" if clock else "cycles"
    workload = ("sleep", f"{seconds:g}")
    argv = record_argv(
        workload,
        output,
        event=event,
        call_graph="dwarf",
        perf=perf,
        frequency=frequency,
        options=options,
        switches=switches,
    )
    return (*argv[: argv.index("-o")], "-p", str(pid), *argv[argv.index("-o") :])


def inject_argv(perf_data: Path, output: Path, *, perf: str = "perf") -> tuple[str, ...]:
    """Return the command that merges CPython's notes on its functions (jit-PID.dump) into a new recording.

    It writes an image per function (jitted-PID-N.so) next to the dumps; perf script needs them: clean up after
    it.
    """
    return (perf, *_NO_CACHE, "inject", "-f", "-j", "-i", str(perf_data), "-o", str(output))


def script_argv(
    perf_data: Path, output: Path, *, perf: str = "perf", offsets: bool = False
) -> tuple[str, ...]:
    """Return the command that turns a recording into the text that `script.read_script` reads, in `output`.

    With `offsets` the text has the offset in each function. Without inlined frames: looking them up took three
    times as long on CPython with symbols, and is known to take far longer on large C++ binaries. Without
    debuginfod: a missing symbol must not wait for the network. `-f` since under sudo the file belongs to another
    user. perf script writes to standard output only, hence sh.
    """
    shell = 'export DEBUGINFOD_URLS= LC_ALL=C; exec "$@" >"$0"'
    fields = f"comm,pid,tid,time,period,event,ip,sym,{'symoff,' if offsets else ''}dso"
    script = (perf, "script", "-f", "-i", str(perf_data), "--no-inline", "--max-stack", str(DEPTH))
    return ("sh", "-c", shell, str(output), *script, "--show-lost-events", "-F", fields)


def switches_argv(perf_data: Path, output: Path, *, perf: str = "perf") -> tuple[str, ...]:
    """Return the command that writes the times of samples, switches and processes for `switches.read_switches`.

    Of a recording without them, or one that perf cannot read, the text holds no switch: it is no reason to fail.
    """
    shell = f'export LC_ALL=C; "$@" | head -n {MAX_SWITCHES} >"$0"'
    shown = ("--show-switch-events", "--show-task-events", "-F", "pid,tid,time,event")
    script = (perf, "script", "-f", "-i", str(perf_data), *shown)
    return ("sh", "-c", shell, str(output), *script)


# perf obeys the user's locale: a decimal comma makes its CSV and JSON ambiguous. C and not C.UTF-8, which old
# systems lack; Python runs in UTF-8 mode under C.
STAT_ENV: Mapping[str, str] = {"LC_ALL": "C"}
# A raw event holds commas (cpu/event=0x29,umask=0x7/) and no bar.
SEPARATOR = "|"


def stat_argv(
    workload: Sequence[str],
    output: Path | str,
    events: Sequence[str],
    *,
    control: Path | str | None = None,
    ack: Path | str | None = None,
    perf: str = "perf",
    system_wide: bool = False,
) -> tuple[str, ...]:
    """Return the command that counts `events` of `workload` into `output`; run it with STAT_ENV on top.

    With `control` (and `ack`) perf starts switched off and the workload's region switches it through these two
    pipes. Events of memory controllers and shared caches belong to no process: with one of them, or with
    `system_wide`, the whole machine is counted. `workload` is best wrapped by `status_wrapper`, since perf hides
    how it ended. CSV and not JSON, since perf before 6.1 has no JSON and some later ones write it invalid. Raises
    ValueError without events.
    """
    if not events:
        raise ValueError("perf stat without events would count its own choice of them")
    argv = [perf, "stat", "-x", SEPARATOR, "-o", str(output)]
    if system_wide or any(is_system_wide(event) for event in events):
        argv.append("-a")
    for event in events:
        argv += ["-e", event]
    if control is not None:
        pipes = str(control) if ack is None else f"{control},{ack}"
        argv += ["-D", "-1", "--control", f"fifo:{pipes}"]
    return (*argv, "--", *workload)


def events_of(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the events of a command that `stat_argv` made, as they were written."""
    before_workload = argv[: argv.index("--")] if "--" in argv else argv
    return tuple(event for option, event in pairwise(before_workload) if option == "-e")


PARANOID_FIX = "sysctl kernel.perf_event_paranoid=1   (as root; in a container: docker run --cap-add PERFMON)"
NO_PMU_FIX = "use a machine that shows its PMU: bare metal, or a guest with host-passthrough; else simulate"


def known_faults() -> tuple[KnownFault, ...]:
    """Load the table of perf's error texts."""
    return load_faults(Path(__file__).with_name("faults.yaml"), paranoid=PARANOID_FIX, no_pmu=NO_PMU_FIX)


def explain(text: str, returncode: int) -> Fault | None:
    """Return the fault that perf printed as `text` before it ended with `returncode`; None for an unknown one."""
    return first_known(known_faults(), text, returncode)


_MAGIC = b"PERFILE2"
# One per process that ran with perf support. The folder is fixed in CPython; TMPDIR and JITDUMPDIR change nothing.
LEFTOVER_FOLDER = Path("/tmp")
_COMM, _FORK = 3, 7  # record types that name every process
_RECORD = struct.Struct("<IHH")


def recorded_pids(path: Path) -> frozenset[int]:
    """Return the number of every process that the recording saw start or change its name.

    Raises UnreadableReport where the file is no perf.data or ends within its header; a recording that ends later
    gives what stands before its end.
    """
    pids = set()
    with reading(path), open_regular(path) as file:
        head = file.read(104)
        if not head.startswith(_MAGIC) or len(head) < 104:
            raise UnreadableReport(f"{path} is not a perf.data file, or is cut off within its header")
        position, length = struct.unpack_from("<QQ", head, 40)
        size = file.seek(0, os.SEEK_END)
        # perf fills in the length when it ends; a killed perf leaves 0, and records up to the end of the file.
        end = min(position + length, size) if length else size
        file.seek(min(position, size))
        # Walked in large pieces: a record is 64 KiB at most, and a recording has millions of them.
        piece, at = b"", 0
        while position < end:
            if at + 65536 > len(piece):
                piece, at = piece[at:] + file.read(1 << 22), 0
            if at + 12 > len(piece):
                break
            kind, _, length = _RECORD.unpack_from(piece, at)
            if length < 8:
                break
            if kind in (_COMM, _FORK):
                pids.add(struct.unpack_from("<I", piece, at + 8)[0])
            at, position = at + length, position + length
    return frozenset(pids)


_LEFTOVER = re.compile(r"(?:perf|jit|jitted)-(\d{1,10})(?:\.map|\.dump|-\d+\.so)")


def remove_leftovers(pids: Collection[int], since: float, folder: Path = LEFTOVER_FOLDER) -> int:
    """Remove the dumps, maps and images of `pids` that this user wrote since `since` (seconds of the epoch).

    Returns how many; one that cannot be removed stays. The process numbers come from the recording
    (`recorded_pids`): another profiler may be at work on the same machine, and its files have the same form. The
    time keeps an older file of a reused number.
    """
    removed = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            match = _LEFTOVER.fullmatch(entry.name)
            if match is None or int(match[1]) not in pids:
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                # Whole seconds: the clock of the file system is coarser than the one `since` was read from.
                if is_ours and status.st_mtime >= since - 1:
                    os.unlink(entry.path)
                    removed += 1
    return removed
