"""How a recording becomes a text that can be read: by perf itself, wherever one is here that starts."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.perf.find import find_perf
from profkit.profilers.perf.record_command import script_argv


def conversion_argv(perf_data: Path, output: Path) -> tuple[str, ...]:
    """The command that turns `perf_data` into text for `script.read_script`, to be run where perf is."""
    return script_argv(perf_data, output, perf=find_perf().path or "perf")
