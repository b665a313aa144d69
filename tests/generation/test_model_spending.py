"""A limit is kept before it is passed, by several requests at once, and with what failed requests cost."""

from __future__ import annotations

import threading
import time

import pytest

from profkit.core.types import GenerationLimits
from profkit.generation.clients.client import BudgetSpent, Cancelled, Ledger, Message

TALK = [Message("user", "x" * 300)]  # 100 tokens are set aside
OPEN = threading.Event()


def test_a_request_that_could_pass_the_limit_is_refused_before_it_is_sent() -> None:
    ledger = Ledger(GenerationLimits(tokens=1000))
    ledger.settle(ledger.reserve(TALK, 900, OPEN), (80, 40))
    assert ledger.spent == (80, 40)
    ledger.settle(ledger.reserve(TALK, 780, OPEN), (0, 0))
    with pytest.raises(BudgetSpent, match="120 of 1,000 tokens are spent, and a request may take 881"):
        ledger.reserve(TALK, 781, OPEN)


def test_cost_is_that_of_the_prices_that_the_user_gives() -> None:
    ledger = Ledger(GenerationLimits(cost=0.01, prices=(3.0, 15.0)), before=(1000, 200))
    ledger.settle(ledger.reserve(TALK, 200, OPEN), (0, 0))
    with pytest.raises(BudgetSpent, match=r"0\.006 of 0\.01 are spent, and a request may take 0\.0048"):
        ledger.reserve(TALK, 300, OPEN)


def test_what_others_have_set_aside_is_waited_for() -> None:
    ledger = Ledger(GenerationLimits(tokens=1000))
    first = ledger.reserve(TALK, 500, OPEN)
    threading.Timer(0.1, ledger.settle, (first, (10, 10))).start()
    start = time.monotonic()
    ledger.reserve(TALK, 500, OPEN)
    assert time.monotonic() - start > 0.05


def test_who_waits_ends_with_the_client() -> None:
    ledger = Ledger(GenerationLimits(tokens=1000))
    ledger.reserve(TALK, 500, OPEN)
    closed = threading.Event()
    threading.Timer(0.1, closed.set).start()
    with pytest.raises(Cancelled):
        ledger.reserve(TALK, 500, closed)


def test_many_requests_at_once_never_pass_the_limit() -> None:
    ledger = Ledger(GenerationLimits(tokens=5000))
    refused = []

    def spend() -> None:
        try:
            for _ in range(20):
                ledger.settle(ledger.reserve(TALK, 400, OPEN), (100, 350))
        except BudgetSpent as error:
            refused.append(error)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(ledger.spent) == 11 * 450
    assert len(refused) == 4
