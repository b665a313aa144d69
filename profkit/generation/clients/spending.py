"""What asking models has cost, and may cost: a request is refused where it could pass the limit."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from profkit.generation.clients.client import BudgetSpent, Cancelled, Message

_FEWEST_CHARACTERS = 3  # of a token: what is set aside is rather too much than too little
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Limits:
    """None is no limit. `prices`: of a million tokens that go in, and of a million that come out."""

    tokens: int | None = None
    cost: float | None = None
    prices: tuple[float, float] | None = None


@dataclass(frozen=True)
class Reservation:
    """Tokens that a request under way may take at most, as far as its text says."""

    input_tokens: int
    output_tokens: int


class Ledger:
    """Tokens and cost of all requests; used by several threads. `before` is what earlier sessions took, in and out."""

    def __init__(self, limits: Limits | None = None, before: tuple[int, int] = (0, 0)) -> None:
        self.limits = limits or Limits()
        self._input, self._output = before
        self._reserved: list[Reservation] = []
        self._changed = threading.Condition()

    @property
    def input_tokens(self) -> int:
        """Tokens that went in, of requests that failed, too."""
        return self._input

    @property
    def output_tokens(self) -> int:
        """Tokens that came out, of requests that failed, too."""
        return self._output

    @property
    def cost(self) -> float | None:
        """In the unit of the prices; None without prices. What a service gives cheaper is not known here."""
        return self._cost(self._input, self._output)

    def reserve(
        self, messages: Sequence[Message], answer_tokens: int, closed: threading.Event
    ) -> Reservation:
        """Set aside what a request may take; waits where only what others have set aside is in its way.

        Raises BudgetSpent where it could pass a limit, Cancelled once `closed` is set.
        """
        characters = sum(len(message.text) for message in messages)
        wanted = Reservation(math.ceil(characters / _FEWEST_CHARACTERS), answer_tokens)
        with self._changed:
            while True:
                if closed.is_set():
                    raise Cancelled
                if passed := self._passed([wanted]):
                    raise BudgetSpent(passed)
                if not self._passed([*self._reserved, wanted]):
                    self._reserved.append(wanted)
                    return wanted
                self._changed.wait(_LOOK_SECONDS)

    def settle(self, reservation: Reservation, input_tokens: int, output_tokens: int) -> None:
        """Replace what was set aside by what the request took."""
        with self._changed:
            self._reserved.remove(reservation)
            self._input += input_tokens
            self._output += output_tokens
            self._changed.notify_all()

    def _passed(self, more: Sequence[Reservation]) -> str:
        """The limit that could be passed with these on top of what is spent, in words; empty where none could."""
        went_in = self._input + sum(reservation.input_tokens for reservation in more)
        came_out = self._output + sum(reservation.output_tokens for reservation in more)
        limits = self.limits
        if limits.tokens is not None and went_in + came_out > limits.tokens:
            spent = self._input + self._output
            return f"{spent:,} of {limits.tokens:,} tokens are spent, and a request may take {_total(more):,}"
        cost = self._cost(went_in, came_out)
        if limits.cost is not None and cost is not None and cost > limits.cost:
            spent_cost = self.cost or 0.0
            return f"{spent_cost:.4g} of {limits.cost:.4g} are spent, and a request may take {cost - spent_cost:.4g}"
        return ""

    def _cost(self, went_in: int, came_out: int) -> float | None:
        if self.limits.prices is None:
            return None
        of_input, of_output = self.limits.prices
        return (went_in * of_input + came_out * of_output) / 1e6


def _total(reservations: Sequence[Reservation]) -> int:
    return sum(reservation.input_tokens + reservation.output_tokens for reservation in reservations)
