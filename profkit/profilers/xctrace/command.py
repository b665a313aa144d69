"""Which xctrace there is, how it is called, and what its error texts mean. The one place with its flags."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.tables import judge_rows
from profkit.core.types import Check
from profkit.profilers.programs import (
    KnownFault,
    ToolAbility,
    ask_tool,
    ask_version,
    first_known,
    last_line,
    load_faults,
    missing_fault,
)

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
COUNTERS_FIX = (
    "record with a template of your own: Instruments, Metal System Trace, GPU > Counter Set > Performance Limiters, "
    "save as a template, xctrace record --template NAME"
)
LICENCE_EXIT = 69


def known_faults() -> tuple[KnownFault, ...]:
    """The table of what error texts mean."""
    return load_faults(Path(__file__).with_name("faults.yaml"), select=SELECT_FIX, counters=COUNTERS_FIX)


def explain_fault(text: str, returncode: int) -> Fault | None:
    """The fault that xctrace or xcrun printed as `text` before it ended with `returncode`; None where none is known."""
    if (fault := first_known(known_faults(), text)) is not None:
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


VARIABLE = "PROFKIT_XCTRACE"
INSTALL_FIX = (
    "install Xcode, open it once, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
)
_ELSEWHERE = "record on a Mac, bring the folder of exported tables, then: profkit summarize FOLDER"
_SECONDS = 60.0  # the first call of xcrun after an update of Xcode fills its caches


def locate_xctrace() -> Path | Fault:
    """The xctrace that PROFKIT_XCTRACE names where it is set, else the one that `xcrun --find` tells; or why none is.

    The answer is kept for this process, as long as the environment says the same.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        return Path(path) if path else missing_fault("xctrace", VARIABLE, INSTALL_FIX)
    return _ask_xcrun(shutil.which("xcrun"), os.environ.get("DEVELOPER_DIR"))


@lru_cache(maxsize=8)
def _ask_xcrun(xcrun: str | None, developer: str | None) -> Path | Fault:  # noqa: ARG001 - xcrun reads DEVELOPER_DIR
    if xcrun is None:
        return Fault("xctrace is a part of Xcode and runs on macOS only: there is no xcrun here", _ELSEWHERE)
    returncode, text = ask_tool((xcrun, "--find", "xctrace"), _SECONDS)
    path = last_line(text)
    if returncode == 0 and os.access(path, os.X_OK) and Path(path).is_file():
        return Path(path)
    fault = explain_fault(text, returncode)
    reason = fault.reason if fault is not None else f"xcrun does not find xctrace: {path}"
    fix = fault.fix if fault is not None and fault.fix is not None else INSTALL_FIX
    return Fault(reason, fix)


_SECONDS_PROBE = 120.0  # the first call after an update of Xcode takes long
_VERSION = re.compile(r"xctrace version (\d+(?:\.\d+)*(?: \(\w+\))?)")


@dataclass(frozen=True)
class XctraceAbility(ToolAbility):
    """What xctrace can do on this machine. `version` is that of Instruments with its build, "16.0 (17F42)".

    `templates` and `instruments` are names as xctrace lists them; empty where it did not list any.
    """

    templates: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()

    def lacks(self, *, template: str | None = None, instrument: str | None = None) -> str | None:
        """Why a template or an instrument cannot be recorded with; None where it is listed, or nothing was listed."""
        if not self.works:
            return self.reason or "xctrace does not work here"
        if template is not None and self.templates and template not in self.templates:
            return f"this Xcode has no template called {template}"
        if instrument is not None and self.instruments and instrument not in self.instruments:
            return f"this Xcode has no instrument called {instrument}"
        return None


def probe_xctrace() -> XctraceAbility:
    """Ask xctrace for its version and what it can record with; the answer is kept for this process.

    Nothing is recorded: a recording takes from some seconds to a minute. What only a recording shows (developer mode,
    a busy kernel trace) is told by the pass that meets it, and tried by the doctor.
    """
    location = locate_xctrace()
    if isinstance(location, Fault):
        return XctraceAbility(None, None, False, location.reason, location.fix)
    return _probe_program(location)


@lru_cache(maxsize=8)
def _probe_program(path: Path) -> XctraceAbility:
    answer = ask_version(
        path, _VERSION, explain_fault, INSTALL_FIX, argument="version", seconds=_SECONDS_PROBE
    )
    if not answer.works:
        return XctraceAbility(**vars(answer))
    templates, instruments = _list_names(path, "templates"), _list_names(path, "instruments")
    return XctraceAbility(**vars(answer), templates=templates, instruments=instruments)


def _list_names(path: Path, what: str) -> tuple[str, ...]:
    returncode, text = ask_tool((str(path), "list", what), _SECONDS_PROBE)
    return parse_names(text) if returncode == 0 else ()


def parse_names(text: str) -> tuple[str, ...]:
    """The names in what `xctrace list` prints: one a line, below headings like `== Standard Templates ==`."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("==")))


# What the backends record with (Instruments 12 and later have them), and what is missing without it.
TEMPLATES = {
    "Metal System Trace": "what the GPU did, and when",
    "Time Profiler": "where the CPU's time goes",
    "CPU Counters": "cycles, instructions and cache misses",
}


def xctrace_checks() -> Iterator[Check]:
    """What a recording by Instruments needs on this Mac."""
    return judge_xctrace(probe_xctrace())


def judge_xctrace(xctrace: XctraceAbility) -> Iterator[Check]:
    """What it answered, check by check."""
    missing = [f"{name} ({what})" for name, what in TEMPLATES.items() if name not in xctrace.templates]
    listed = {"missing": ", ".join(missing), "all": ", ".join(TEMPLATES)}
    return judge_rows(Path(__file__).with_name("checks.yaml"), "xctrace", xctrace, listed)
