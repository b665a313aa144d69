"""Whoever searches the page for what a tool prints finds it there."""

from __future__ import annotations

import pytest

from profkit.profilers.ncu.probe import RESTRICTED
from tests.conftest import ROOT

PAGE = " ".join((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "text",
    [
        RESTRICTED,
        "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
        "Profiling failed because a driver resource was unavailable.",
        "No kernels were profiled.",
        "Cuda driver is not compatible with Nsight Compute.",
        "Backing up device memory in system memory.",
        "Failed to save memory for replay",
        "Failed to connect to process",
        "UnknownError",
        "ncu: command not found",
        "No reports were generated",
        "does not contain CUDA kernel data.",
        "Subscribe returned 999: CUPTI_ERROR_UNKNOWN",
        "requires Xcode, but active developer directory '/Library/Developer/CommandLineTools' is a command line tools",
        "tool not found",
        "Export failed: Document Missing Template Error",
        "The log archive is corrupt or incomplete",
        "Selected counter profile is not supported on target device",
        "65 bytes",
    ],
)
def test_what_tools_print_is_found_by_its_own_words(text: str) -> None:
    assert text in PAGE
