"""The command line: one file per verb. Only here are faults caught, printed and turned into exit codes."""

from __future__ import annotations

import os
import sys

from profkit.errors import ProfkitError


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


def print_fault(fault: ProfkitError) -> None:
    """One sentence on standard error, and the line that fixes it."""
    print(f"error: {fault.message}", file=sys.stderr)
    if fault.fix:
        print(f"  fix: {fault.fix}", file=sys.stderr)
