"""Whoever searches the page for what profkit says finds it there."""

from __future__ import annotations

import re

import pytest

from profkit.profilers.ncu import faults as ncu
from profkit.profilers.ncu.faults import RESTRICTED
from profkit.profilers.nsys import command as nsys
from profkit.profilers.perf import command as perf
from profkit.profilers.valgrind import command as valgrind
from profkit.profilers.xctrace import command as xctrace
from tests.conftest import ROOT

PAGE = " ".join((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split())
REASONS = [
    RESTRICTED,
    *(
        known.reason
        for tool in (ncu, nsys, perf, valgrind, xctrace)
        for known in tool.known_faults()
        if not known.exits
    ),
]


@pytest.mark.parametrize("reason", REASONS)
def test_every_fault_of_a_tool_is_explained(reason: str) -> None:
    parts = [part.strip() for part in re.split(r"\{\d\}", reason)]
    assert all(part in PAGE for part in parts), reason


@pytest.mark.parametrize(
    "text",
    [
        "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
        "Profiling failed because a driver resource was unavailable.",
        "No kernels were profiled.",
        "Cuda driver is not compatible with Nsight Compute.",
        "Failed to find metric",
        "Backing up device memory in system memory.",
        "Failed to save memory for replay",
        "Failed to connect to process",
        "terminated before first instrumented API call.",
        "UnknownError",
        "ncu: command not found",
        "No reports were generated",
        "does not contain CUDA kernel data.",
        "Subscribe returned 999: CUPTI_ERROR_UNKNOWN",
    ],
)
def test_what_nvidias_tools_print_is_found_by_its_own_words(text: str) -> None:
    assert text in PAGE


@pytest.mark.parametrize(
    "text",
    [
        "requires Xcode, but active developer directory '/Library/Developer/CommandLineTools' is a command line tools",
        "tool not found",
        "Export failed: Document Missing Template Error",
        "The log archive is corrupt or incomplete",
        "No configuration information received, will have to guess",
        "Selected counter profile is not supported on target device",
        "RT Unit Active",
        "Shader Timeline: Disabled",
        "Counter Set: (null)",
        "already exists",
        "65 bytes",
    ],
)
def test_what_apples_tools_print_is_found_by_its_own_words(text: str) -> None:
    assert text in PAGE
