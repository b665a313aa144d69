"""The command line. Only here are faults caught, printed and turned into exit codes."""

import profkit.core.library_first  # noqa: F401  # the first of all imports

# isort: split
import codecs
import contextlib
import errno
import io
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from profkit.core.errors import Interrupted, MachineError, ProfkitError

# Of the command, in seconds of time.monotonic: what is imported next takes the user half a second, too.
BEGAN = time.monotonic()
# EX_SOFTWARE of sysexits.h: a fault of profkit's own, which no input should be able to cause
INTERNAL_ERROR = 70

BURST_SECONDS = 1.0  # two Ctrl-C within a second count as one


def main(fault_file: str = "") -> None:
    """Run `profkit` and leave the process with the contract's exit code.

    A program of ours that started it reads why it failed from `fault_file`, as JSON: what is printed is for people.
    """
    global _fault_file
    _fault_file = fault_file
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell has it ignored
            signal.signal(signal.SIGINT, _interrupt_once)
        try:
            _make_streams_tolerant()
            _run()
        finally:  # all is said and the exit code stands: a late Ctrl-C has nothing left to interrupt
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # one that came while the first was being answered
        raise SystemExit(Interrupted.exit_code) from None


_fault_file = ""
_last_interrupt = float("-inf")


def _interrupt_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Raise KeyboardInterrupt for the first Ctrl-C only: a second one must not cut off the answer to the first."""
    global _last_interrupt
    now = time.monotonic()
    if now - _last_interrupt > BURST_SECONDS:
        _last_interrupt = now
        raise KeyboardInterrupt


def _run() -> None:
    try:
        _run_app()
    except SystemExit as leaving:
        options = sys.modules.get("profkit.cli.options")
        if leaving.code != Interrupted.exit_code or (options is not None and options.has_printed()):
            raise
        _exit_with(ProfkitError("interrupted"), Interrupted.exit_code)  # typer makes a bare exit of a Ctrl-C
    except KeyboardInterrupt:
        _exit_with(ProfkitError("interrupted"), Interrupted.exit_code)
    except BrokenPipeError:  # the reader of our output went away (`| head`): not our fault, nothing to say
        _exit_quietly()
    except ProfkitError as fault:
        _exit_with(fault, fault.exit_code)
    except OSError as error:  # a disk that filled up, a file that went away while it was read
        _exit_with(_explain_os_error(error), MachineError.exit_code)
    except MemoryError:
        message = "the memory is not enough for this: nothing more can be said"
        _exit_with(MachineError(message, "ulimit -v; free -h"), MachineError.exit_code)
    except Exception as error:
        if os.environ.get("PROFKIT_DEBUG"):
            raise
        message = f"profkit itself failed ({type(error).__name__}: {error}); this is a fault of profkit's"
        _exit_with(
            ProfkitError(message, "run it again with PROFKIT_DEBUG=1 and report what it prints"),
            INTERNAL_ERROR,
        )


def _explain_os_error(error: OSError) -> MachineError:
    """Return what the system would not do, and where to look."""
    named = error.filename if isinstance(error.filename, str) else None
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = "the output" if named is None else named
        return MachineError(
            f"cannot write {what}: {error.strerror}",
            f"df -h {shlex.quote(str(Path(named).parent))}" if named else "df -h",
        )
    where = f": {named}" if named else ""
    fix = f"ls -ld {shlex.quote(named)}" if named else "df -h; ulimit -a"
    return MachineError(f"the system refused: {error.strerror or error}{where}", fix)


def _make_streams_tolerant() -> None:
    """Escape characters that a stream cannot show, and replace closed streams (`>&-`), so that no result is lost."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as we live
        elif isinstance(stream, io.TextIOWrapper):
            codecs.register_error(_SIGNS_ERROR, _plain_signs)
            stream.reconfigure(errors=_SIGNS_ERROR)


# What bars are made of, for a terminal that knows only ASCII: heights by eighths, and a full one.
_SIGNS_ERROR = "profkit-signs"
_SIGNS = {**dict(zip("▁▂▃▄▅▆▇█", "1234567#", strict=True)), "▏": "|", "│": "|", "░": "?", "·": "."}


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    """Return a piece of text that the stream cannot encode: bars in ASCII, any other character as an escape."""
    assert isinstance(error, UnicodeEncodeError)
    piece = error.object[error.start : error.end]
    plain = (_SIGNS.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in piece)
    return "".join(plain), error.end


def _run_app() -> None:
    from profkit.cli.app import app

    app()


def _exit_with(fault: ProfkitError, code: int) -> None:
    """Say the fault: on standard error, and as the one document where JSON was asked for."""
    try:
        if _fault_file:
            _hand_over(fault, code)
        print_fault(fault)
        options = sys.modules.get("profkit.cli.options")
        if options is not None and options.json_is_due():
            sys.stdout.write(_error_document(fault, code))
        sys.stdout.flush()
    except OSError:
        _exit_quietly(code)
    raise SystemExit(code) from None


def _hand_over(fault: ProfkitError, code: int) -> None:
    from profkit.core.files.safe_folder import write_whole

    write_whole(Path(_fault_file), (_fault_text(fault, code),))


def _exit_quietly(code: int = 0) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(code) from None


def _error_document(fault: ProfkitError, code: int) -> str:
    """Return the run that met the fault, which describes it; else only the fault."""
    if fault.run is not None:
        from profkit.core.run_folder import read_run
        from profkit.reporting.json import run

        with contextlib.suppress(ProfkitError):
            return run(read_run(fault.run))
    return _fault_text(fault, code)


def _fault_text(fault: ProfkitError, code: int) -> str:
    import json

    from profkit.runtime.passes.shown_command import mask_secrets

    fix = mask_secrets(fault.fix) if fault.fix else fault.fix
    body = {"message": mask_secrets(fault.message), "fix": fix, "exit_code": code}
    return json.dumps({"schema": "profkit.error/1", "error": body}, indent=1) + "\n"


def print_fault(fault: ProfkitError) -> None:
    """Print a fault as one sentence on standard error, with the line that fixes it."""
    from profkit.reporting.plain_text import disarm_commands, text_for_others

    first, *said = fault.message.split("\n")  # what a workload printed, or a file that is called so
    lines = [f"error: {first}", *(f"  | {line}" for line in said)]
    if fault.run is not None and (fault.run / "run.json").is_file():
        from profkit.core.run_folder import short_path

        lines.append(f"(run: {short_path(fault.run)})")
    lines += [f"  fix: {fault.fix}"] if fault.fix else []
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")  # a line of progress that still stands there
    for line in lines:
        print(disarm_commands(text_for_others(line)), file=sys.stderr)
