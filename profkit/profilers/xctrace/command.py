"""Builds xctrace's command lines, the only place with its flags, and explains its error texts."""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import Fault
from profkit.profilers.faults import KnownFault, first_known, load_faults

SUFFIX = ".trace"
METAL = "Metal System Trace"
TIME_PROFILER = "Time Profiler"
GPU_COUNTERS = "Metal GPU Counters"  # an instrument, no template
POINTS = "Points of Interest"  # an instrument: signposts

# What xctrace ends with when its time limit ended a launched program; the document is whole (Xcode 16 to 27).
CUT = 54
# The option that passes a variable to the launched program: a service of Instruments starts it, and whether
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
    """Return the command that launches `command` and records it into `document`.

    `document` (`.trace`) must not exist yet. `template` and `instruments` by the names of `xctrace list`; one of
    both at least. `limit`: seconds after which xctrace ends the program and the recording. The program is
    launched and not attached to: an attached one shows no Metal work in some versions. What it prints comes out
    of xctrace. `command[0]` is best an absolute path. Nothing is put between xctrace and the program, no shell
    and no `env`: tables that hold one process only would hold that one.
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
    """Format a time as xctrace takes it, in whole milliseconds or seconds: "1500ms", "60s"."""
    milliseconds = max(1, math.ceil(seconds * 1000))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def toc_argv(document: Path | str, output: Path | str, *, xctrace: str = "xctrace") -> tuple[str, ...]:
    """Return the command that writes the table of contents of a document."""
    return (xctrace, "export", "--input", str(document), "--toc", "--output", str(output))


def table_argv(
    document: Path | str, schema: str, output: Path | str, *, run: int = 1, xctrace: str = "xctrace"
) -> tuple[str, ...]:
    """Return the command that writes all tables of one schema.

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
    """Return the XPath of all tables of `schema` of one run.

    Raises ValueError for a schema that is no plain name.
    """
    if not schema or any(character in "\"'<>&[]" for character in schema):
        raise ValueError(f"{schema!r} is not the name of a schema")
    return f'/trace-toc/run[@number="{run}"]/data/table[@schema="{schema}"]'


def export_line(schema: str, run: int | None) -> str:
    """Return the command to type that exports one table of a run; the first run if its number is unknown."""
    return shlex.join(table_argv("TRACE", schema, f"{schema}.xml", run=1 if run is None else run))


# The file without which Instruments does not open a document ("Document Missing Template Error"): written last.
_LAST = "form.template"


def absolute_command(command: Sequence[str], folder: str | Path) -> tuple[str, ...]:
    """Return the command with the whole path of its program.

    What launches it may know neither PATH nor `folder`. Links are left as they are: the `python` of a virtual
    environment knows by its own path that it is one.
    """
    first = command[0]
    if os.sep in first:
        return (os.path.normpath(os.path.join(folder, first)), *command[1:])
    program = shutil.which(first)
    return (os.path.join(folder, program) if program is not None else first, *command[1:])


def is_finished(document: Path) -> bool:
    """Return whether a document is complete, and not left by a recording that was killed before it was saved."""
    return document.is_dir() and (document / _LAST).is_file()


SELECT_FIX = "install Xcode, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
COUNTERS_FIX = (
    "record with a template of your own: Instruments, Metal System Trace, GPU > Counter Set > Performance Limiters, "
    "save as a template, xctrace record --template NAME"
)


def known_faults() -> tuple[KnownFault, ...]:
    """Load the table of xctrace's error texts."""
    return load_faults(Path(__file__).with_name("faults.yaml"), select=SELECT_FIX, counters=COUNTERS_FIX)


def explain_fault(text: str, returncode: int) -> Fault | None:
    """Return the fault that xctrace or xcrun printed as `text` before it ended with `returncode`; else None."""
    return first_known(known_faults(), text, returncode)
