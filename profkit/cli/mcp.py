"""`profkit mcp`: the commands as tools of a coding agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import option

EXAMPLES = """
Example:  profkit mcp . --budget 600

In the settings of a client:  {"command": "profkit", "args": ["mcp", "/path/to/project"]}

The server uses standard input and output, and ends when they are closed. A command must name a file below FOLDER and
runs in that folder. This is not a sandbox.
"""


def mcp(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder to which commands, runs and reports are restricted.", metavar="[FOLDER]"
        ),
    ] = Path(),
    budget: Annotated[float, option(None, "Seconds that all commands together may take.", min=1.0)] = 600.0,
) -> None:
    """Offer profile, summarize, compare, check and doctor to a coding agent (Model Context Protocol)."""
    from profkit.core.errors import MachineError, UsageError

    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "profkit mcp .")
    try:
        from profkit.fronts.mcp import serve
    except ImportError as error:
        if (error.name or "").split(".")[0] != "mcp":
            raise
        raise MachineError("the Python package mcp is not installed", "pip install 'profkit[mcp]'") from None
    serve(folder, budget)
