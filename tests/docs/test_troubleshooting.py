"""Whoever searches the page for what profkit says finds it there."""

from __future__ import annotations

import re

import pytest

from profkit.tools.ncu import faults as ncu
from profkit.tools.ncu.permission import RESTRICTED
from profkit.tools.nsys import faults as nsys
from profkit.tools.perf import faults as perf
from profkit.tools.valgrind import faults as valgrind
from tests.conftest import ROOT

PAGE = " ".join((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split())
REASONS = [RESTRICTED, *(known.reason for room in (ncu, nsys, perf, valgrind) for known in room.FAULTS)]


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
