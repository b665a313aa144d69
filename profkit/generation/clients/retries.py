"""A request is tried again where its fault passes: after the time that the service asks for, or longer each time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from profkit.generation.clients.asking import Patience
from profkit.generation.clients.client import Answer, Cancelled
from profkit.generation.clients.faults import FaultKind, RequestFault

WORDS: dict[FaultKind, str] = {
    "rate-limit": "rate limit",
    "overloaded": "overloaded",
    "server": "server error",
    "connection": "no connection",
    "silence": "no answer",
    "cut": "the answer was cut off",
}


class GaveUp(Exception):
    """The last fault of a request, after all tries; `spent` are the tokens of all of them, in and out."""

    def __init__(self, fault: RequestFault, tries: int, spent: tuple[int, int]) -> None:
        super().__init__(fault.detail)
        self.fault, self.tries, self.spent = fault, tries, spent


def ask_again(
    request: Callable[[], Answer],
    patience: Patience,
    closed: threading.Event,
    report: Callable[[str], None],
) -> Answer:
    """The answer of the first try that brings one, with the tokens of those that were cut off, and all seconds.

    Raises GaveUp with the fault that does not pass or lasts too long, Cancelled once `closed` is set.
    """
    start = time.monotonic()
    first_fault: float | None = None
    went_in = came_out = 0
    for number in range(patience.tries):
        try:
            answer = request()
        except RequestFault as fault:
            now = time.monotonic()
            first_fault = now if first_fault is None else first_fault
            went_in, came_out = went_in + fault.spent[0], came_out + fault.spent[1]
            wait = next_wait(patience, number, fault.wait)
            left = patience.seconds - (now - first_fault)
            if not fault.passes or number + 1 == patience.tries or wait > left:
                raise GaveUp(fault, number + 1, (went_in, came_out)) from fault
            report(f"{WORDS[fault.kind]}, waiting {max(1, round(wait))} s")
            if closed.wait(wait):
                raise _cancelled(went_in, came_out) from None
        except Cancelled as cancelled:
            cancelled.spent = went_in + cancelled.spent[0], came_out + cancelled.spent[1]
            raise
        else:
            return replace(
                answer,
                input_tokens=_sum(answer.input_tokens, went_in),
                output_tokens=_sum(answer.output_tokens, came_out),
                estimated=answer.estimated or went_in + came_out > 0,
                seconds=time.monotonic() - start,
                retries=number,
            )
    raise AssertionError("a request is tried once at least")


def next_wait(patience: Patience, number: int, asked: float | None) -> float:
    """Seconds until the next try: what the service asks for, or twice the last wait, up to a quarter less by chance.

    Chance, so that requests that failed together do not come back together.
    """
    if asked is not None:
        return asked
    wait = min(patience.longest_wait, patience.first_wait * 2.0**number)
    return wait * random.uniform(0.75, 1.0)


def _sum(tokens: int | None, more: int) -> int | None:
    return tokens if not more else (tokens or 0) + more


def _cancelled(went_in: int, came_out: int) -> Cancelled:
    cancelled = Cancelled()
    cancelled.spent = went_in, came_out
    return cancelled
