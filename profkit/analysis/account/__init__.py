"""Where a step goes: its rows, and how near each is to what the hardware allows.

Rows add up to the step. The least time of a row is that of the work that its operation needs by its shapes, at the
device's peaks; else of the work that was counted at the peak of its busiest unit: a kernel that keeps DRAM at 60 % of
its peak would take 60 % of its time with the same traffic at the peak. Idle time needs none.
"""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.account.clock import with_clock
from profkit.analysis.account.device import device_account
from profkit.analysis.account.host import host_account
from profkit.analysis.account.start import start_parts
from profkit.analysis.summaries.host import share_of_waiting_threads
from profkit.core.types import Account, RunDocument


def make_account(document: RunDocument) -> Account | None:
    """Return the account of one step of what was traced or marked, else of the run; None where nothing was sampled."""
    if document.metal is not None:
        return None
    trace = document.trace
    account = host_account(document) if trace is None else device_account(document, trace)
    if account is None:
        return None
    if trace is None:
        account = replace(account, waiting_threads=share_of_waiting_threads(document))
    else:
        account = with_clock(account, document)
    return replace(account, start=start_parts(document, account))
