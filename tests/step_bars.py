"""Accounts whose parts are all of a kind, for tests of the bar of a step."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import Account, AccountRow, Place, RunDocument
from tests import documents
from tests.page_documents import HOSTILE


def account_document(*rows: AccountRow) -> RunDocument:
    """A run with an account of these rows."""
    seconds = sum(row.seconds for row in rows)
    return replace(documents.document(), account=Account("step", seconds, rows, 29))


def mixed() -> RunDocument:
    """Half at 95 % of the tensor cores, a fifth of which a tenth is needed, idle time, and what nobody knows."""
    at = Place(file="train.py", line=9, function="forward")
    return account_document(
        AccountRow("kernel", 5e-3, at, "aten::mm [64,64] x [64,64]", 3, "cuBLAS", "tensor", 0.95, 4.75e-3),
        AccountRow("kernel", 2e-3, at, "aten::mul [64,64]", 1, None, "l1", 0.8, 0.2e-3),
        AccountRow("idle", 2e-3, Place(file="train.py", line=12), least=0.0, launches=40),
        AccountRow("kernel", 1e-3, Place(file="train.py", line=20), "own_kernel", 1),
    )


def hostile_account() -> RunDocument:
    """Rows whose names would like to be more than names."""
    rows = [
        AccountRow("kernel", 1e-3, Place(file=name, line=1, function=name), name, 1, name, "dram", 0.5, 5e-4)
        for name in HOSTILE
    ]
    return account_document(*rows)
