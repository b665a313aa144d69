"""How xctrace is called, and what its error texts mean. The one place with its flags."""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import Fault
from profkit.profilers.faults import first_known, known_fault

SUFFIX = ".trace"
METAL = "Metal System Trace"
TIME_PROFILER = "Time Profiler"
CPU_COUNTERS = "CPU Counters"
GPU_COUNTERS = "Metal GPU Counters"  # an instrument, no template
POINTS = "Points of Interest"  # an instrument: signposts

# What xctrace ends with when its time limit ended a launched program; the document is whole (Xcode 16 to 27).
CUT = 54
# The option by which the launched program is told a variable: it is started by a service of Instruments, and whether
# it gets the environment of xctrace differs between versions.
TELL = "--env"
# Seconds that the document may take after the recording: on an M1 4 s of GPU counters took 115 s, others up to 70 s.
FINISH, FINISH_COUNTERS = 180.0, 600.0


def record_argv(
    command: Sequence[str],
    document: Path | str,
    *,
    template: str | None = None,
    instruments: Sequence[str] = (),
    limit: float | None = None,
    xctrace: str = "xctrace",
) -> tuple[str, ...]:
    """The command that launches `command` and records it into `document` (`.trace`, which must not be there yet).

    `template` and `instruments` by the names that `xctrace list` tells; one of both at least. `limit`: seconds after
    which xctrace ends the program and the recording. The
    program is launched and not attached to: an attached one shows no Metal work in some versions. What it prints comes
    out of xctrace. `command[0]` is best an absolute path. Nothing is put between xctrace and the program, no shell and
    no `env`: tables that hold one process only would hold that one.
    """
    argv = [xctrace, "record"]
    if template is not None:
        argv += ["--template", template]
    for instrument in instruments:
        argv += ["--instrument", instrument]
    if limit is not None:
        argv += ["--time-limit", time_limit(limit)]
    argv += ["--no-prompt", "--output", str(document), "--target-stdout", "-"]
    return (*argv, "--launch", "--", *command)


def time_limit(seconds: float) -> str:
    """A time as xctrace takes it, whole milliseconds or seconds: "1500ms", "60s"."""
    milliseconds = max(1, math.ceil(seconds * 1000))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def toc_argv(document: Path | str, output: Path | str, *, xctrace: str = "xctrace") -> tuple[str, ...]:
    """The command that writes the table of contents of a document."""
    return (xctrace, "export", "--input", str(document), "--toc", "--output", str(output))


def table_argv(
    document: Path | str, schema: str, output: Path | str, *, run: int = 1, xctrace: str = "xctrace"
) -> tuple[str, ...]:
    """The command that writes all tables of one schema.

    Where there is none it ends with 0 all the same and leaves an empty result of 65 bytes.
    """
    return (
        xctrace,
        "export",
        "--input",
        str(document),
        "--xpath",
        table_xpath(schema, run),
        "--output",
        str(output),
    )


def table_xpath(schema: str, run: int = 1) -> str:
    """All tables of `schema` of one run. Raises ValueError for a schema that is no plain name."""
    if not schema or any(character in "\"'<>&[]" for character in schema):
        raise ValueError(f"{schema!r} is no name of a schema")
    return f'/trace-toc/run[@number="{run}"]/data/table[@schema="{schema}"]'


def export_line(schema: str, run: int | None) -> str:
    """The command that exports one table of a run, to be typed; the first run where its number is not known."""
    return shlex.join(table_argv("TRACE", schema, f"{schema}.xml", run=1 if run is None else run))


# The file without which Instruments does not open a document ("Document Missing Template Error"): written last.
_LAST = "form.template"


def absolute_command(command: Sequence[str], folder: str | Path) -> tuple[str, ...]:
    """The command with its program as a whole path, since what launches it may know neither PATH nor `folder`.

    Links are left as they are: the `python` of a virtual environment knows by its own path that it is one.
    """
    first = command[0]
    if os.sep in first:
        return (os.path.normpath(os.path.join(folder, first)), *command[1:])
    program = shutil.which(first)
    return (os.path.join(folder, program) if program is not None else first, *command[1:])


def is_finished(document: Path) -> bool:
    """Whether a document is whole, and not what a recording left that was killed before it had saved."""
    return document.is_dir() and (document / _LAST).is_file()


SELECT_FIX = "install Xcode, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
UNSUPPORTED_COUNTERS = (
    "this Xcode has no set of GPU counters for this chip that can be recorded from a command line"
)
COUNTERS_FIX = (
    "record with a template of your own: Instruments, Metal System Trace, GPU > Counter Set > Performance Limiters, "
    "save as a template, xctrace record --template NAME"
)
LICENCE_EXIT = 69

# The most telling first: what follows from another fault stands below it.
FAULTS = (
    known_fault(
        r"requires Xcode, but active developer directory '([^'\n]*)' is a command line tools instance",
        "only the command line tools are selected ({0}), and xctrace is a part of Xcode itself",
        SELECT_FIX,
    ),
    known_fault(
        r"unable to find utility \"xctrace\"|tool 'xctrace' not found|xctrace[^\n]{0,40}tool not found|"
        r"^\s*(?:xcrun: )?(?:error: )?tool not found",
        "the selected developer folder has no xctrace: it is a part of Xcode itself, and /usr/bin/xctrace only a stub",
        SELECT_FIX,
    ),
    known_fault(
        r"invalid active developer path \(([^)\n]*)\)|no developer tools were found|"
        r"active developer (?:path|directory)[^\n]*(?:does not exist|not found)",
        "there is no Xcode where it is looked for ({0})",
        SELECT_FIX,
    ),
    known_fault(
        r"agree(?:d)? to the (?:Xcode|Apple SDKs)[^\n]*license|Xcode[^\n]*license agreements?|"
        r"license[^\n]*(?:not (?:been )?accepted|has not been agreed)",
        "the licence of Xcode has not been accepted",
        "sudo xcodebuild -license accept",
    ),
    known_fault(
        r"(?:install|missing)[^\n]*(?:required|additional) components|xcodebuild -runFirstLaunch",
        "Xcode has not finished its installation",
        "sudo xcodebuild -runFirstLaunch",
    ),
    known_fault(
        r"developer mode (?:is |)(?:disabled|off|not enabled)|DevToolsSecurity|not in the _developer group|"
        r"(?:authorization|Instruments)[^\n]*(?:to analyze other processes|is not allowed|not authorized)",
        "developer mode is off, so xctrace may not look into other programs",
        "sudo DevToolsSecurity -enable",
    ),
    known_fault(
        r"Document Missing Template|log archive is corrupt or incomplete and cannot be read|"
        r"(?:trace|document)[^\n]*could not be (?:opened|read)",
        "the document was not finished: xctrace was killed before it had saved, or there was too much of it (2 GB)",
        "record again for a shorter time (--timeout SECONDS), and end it with one Ctrl-C",
    ),
    known_fault(
        r"No space left on device|not enough (?:free |disk )?space|disk (?:is )?full|volume[^\n]*out of space",
        "the disk is full, so xctrace could not save its document",
        "df -h   (a document takes 5 to 100 MB for each second, and its export as much again)",
    ),
    known_fault(
        r"Selected counter profile is not supported on target device|"
        r"Metal GPU Counters[^\n]*failed with status 21",
        UNSUPPORTED_COUNTERS,
        COUNTERS_FIX,
        consequence=True,
        code="unsupported-counters",
    ),
    known_fault(
        r"Instrument with name ['\"]([^'\"\n]+)['\"] cannot be found",
        "this Xcode has no instrument called {0}",
        "xcrun xctrace list instruments",
    ),
    known_fault(
        r"(?:Cannot|Unable to|Could not) find template[^\n]*?(?:matching |)name[d:]?\s*['\"]?([^'\"\n]+)|"
        r"template ['\"]([^'\"\n]+)['\"][^\n]*(?:not found|cannot be found|no such)",
        "this Xcode has no template called {0}",
        "xcrun xctrace list templates",
    ),
    known_fault(
        r"(?:unrecogni[sz]ed|unknown|invalid) (?:option|argument|flag)[:\s]+['\"]?([^'\"\n]+)",
        "this xctrace does not know the option {0}",
        "install a newer Xcode (15 or later)",
    ),
    known_fault(
        r"(?:file|document|output)[^\n]*already exists",
        "there is a document of that name already, and xctrace replaces none",
        "choose another name",
    ),
    known_fault(
        r"Failed to attach to target",
        "xctrace may not look into this program: macOS protects programs that are signed without get-task-allow",
        "use a Python of your own (python.org, Homebrew, uv, conda), not /usr/bin/python3",
    ),
    known_fault(
        r"(?:cannot|could not|unable to|failed to) (?:launch|spawn|start)[^\n]*(?:process|target|executable|file)|"
        r"File does not exist at path",
        "xctrace could not start the workload: no such program, or it is not executable",
    ),
    known_fault(
        r"Failed to query kext info|Operation not permitted[^\n]*(?:kdebug|ktrace)|"
        r"(?:kdebug|ktrace)[^\n]*(?:busy|in use|already)|Another (?:instance|recording)[^\n]*(?:already|in progress)",
        "another recording is under way, or this session may not trace the kernel (a sandbox, a session over ssh)",
        "close Instruments and other recordings; run it in a terminal of the logged-in user",
    ),
    known_fault(
        r"No configuration information received, will have to guess",
        "xctrace was not told how the instruments are configured and guessed: rows may be missing",
        consequence=True,
    ),
    known_fault(
        r"Reached specified time limit",
        "the time limit came before the workload ended; what was recorded until then is kept",
        "give it more time (--timeout SECONDS) or a smaller input",
        consequence=True,
    ),
    known_fault(
        r"Recording failed with errors|Recording failed",
        "xctrace says that the recording failed; some tables may be empty",
        "record once more; where it stays, restart the Mac (its tracing may be left in use)",
        consequence=True,
    ),
)


def explain_fault(text: str, returncode: int) -> Fault | None:
    """The fault that xctrace or xcrun printed as `text` before it ended with `returncode`; None where none is known."""
    if (fault := first_known(FAULTS, text)) is not None:
        return fault
    if returncode == LICENCE_EXIT:
        return Fault("the licence of Xcode has not been accepted", "sudo xcodebuild -license accept")
    if returncode in (-9, 137):
        return Fault("xctrace was killed (SIGKILL), most often for want of memory", "a shorter recording")
    if returncode in (-5, 133):
        return Fault("xctrace crashed", "a shorter recording, or another version of Xcode")
    if returncode == CUT:
        return Fault(
            "xctrace ended with 54, as it does when its time limit ended the workload",
            "give it more time (--timeout SECONDS) or a smaller input",
            consequence=True,
        )
    return None
