"""The command line: one file per verb. Only here are faults caught, printed and turned into exit codes."""

from __future__ import annotations

import os
import sys

from profkit.errors import MachineError, ProfkitError

INTERNAL_ERROR = (
    70  # EX_SOFTWARE of sysexits.h: a fault of profkit's own, which no input should be able to cause
)


def main() -> None:
    """Run `profkit` and leave the process with the contract's exit code."""
    from profkit.cli.app import app

    try:
        app()
    except ProfkitError as fault:
        print_fault(fault)
        raise SystemExit(fault.exit_code) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader of our output went away (`| head`): not our fault, nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as error:  # a disk that filled up, a file that went away while it was read
        print_fault(MachineError(f"the system refused: {error}"))
        raise SystemExit(MachineError.exit_code) from None
    except Exception as error:
        if os.environ.get("PROFKIT_DEBUG"):
            raise
        said = f"profkit itself failed ({type(error).__name__}: {error}); this is a fault of profkit's"
        print_fault(ProfkitError(said, "run it again with PROFKIT_DEBUG=1 and report what it prints"))
        raise SystemExit(INTERNAL_ERROR) from None


def print_fault(fault: ProfkitError) -> None:
    """One sentence on standard error, and the line that fixes it."""
    print(f"error: {fault.message}", file=sys.stderr)
    if fault.fix:
        print(f"  fix: {fault.fix}", file=sys.stderr)
