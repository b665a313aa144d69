"""The limit of a row and its time at the limit say the same: the unit, and which part of the time it needs."""

from __future__ import annotations

import pytest

from profkit.core.types import AccountRow
from profkit.reporting.views.run_account import _busiest_beside, row_limit


@pytest.mark.parametrize(
    ("row", "limit", "beside"),
    [
        # By its shapes the attention needs 75 µs of the tensor cores; as it is computed, L1 is busy.
        (
            AccountRow("kernel", 2.06e-3, limit="l1", busy=0.94, least=75e-6, needs="tensor"),
            "tensor 4 %",
            "; L1 is at 94 %",
        ),
        (AccountRow("kernel", 132e-6, limit="dram", busy=0.09, least=12e-6), "DRAM 9 %", ""),
        (AccountRow("kernel", 131e-6, least=112e-6, needs="dram"), "DRAM 85 %", ""),  # nothing was counted
        (
            AccountRow("kernel", 1e-3, limit="issue", busy=0.86, least=550e-6),
            "issue 55 %",
            "; issue is at 86 %",
        ),
        (AccountRow("kernel", 1e-3, limit="dram", busy=0.91, least=0.9e-3, needs="dram"), "DRAM 90 %", ""),
        (AccountRow("kernel", 56e-6, limit="dram", busy=0.004, least=0.2e-6), "DRAM <1 %", ""),
        (AccountRow("kernel", 1e-3), "", ""),
        (AccountRow("host", 1e-3, limit="fp32", busy=0.79, least=0.79e-3), "FP32 79 %", ""),
        (AccountRow("host", 1e-3, does="workers"), "workers", ""),
    ],
)
def test_the_limit_is_the_part_of_the_time_that_is_needed(row: AccountRow, limit: str, beside: str) -> None:
    assert (row_limit(row), _busiest_beside(row)) == (limit, beside)
