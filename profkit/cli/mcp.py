"""`profkit mcp`: the verbs as tools of a coding agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import option

EXAMPLES = """
Example:  profkit mcp . --budget 600

As a client's settings name it:  {"command": "profkit", "args": ["mcp", "/path/to/project"]}

It speaks the Model Context Protocol on standard input and output until that is closed. Each command that it runs must
name a file below FOLDER, and runs there; this is no sandbox.
"""


def mcp(
    folder: Annotated[
        Path, typer.Argument(help="Commands, runs and reports below it, and no others.", metavar="[FOLDER]")
    ] = Path(),
    budget: Annotated[float, option(None, "Seconds for all commands together.", min=1.0)] = 600.0,
) -> None:
    """Serve profile, summarize, compare, check and doctor to a coding agent, by the Model Context Protocol."""
    from profkit.core.errors import MachineError, UsageError

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "profkit mcp .")
    try:
        from profkit.fronts.mcp import serve
    except ImportError as error:
        if (error.name or "").split(".")[0] != "mcp":
            raise
        raise MachineError(
            "mcp is not installed, and agents speak by it", "pip install 'profkit[mcp]'"
        ) from None
    serve(folder, budget)
