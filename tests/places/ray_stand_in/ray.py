"""As much of Ray as the shell in an actor needs: one node with two T4, and the actor is this process itself."""

from __future__ import annotations

import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from types import SimpleNamespace
from typing import Any

exceptions = SimpleNamespace(GetTimeoutError=type("GetTimeoutError", (Exception,), {}))
_threads = ThreadPoolExecutor(3)


def init(**_: Any) -> None:
    """A cluster that may refuse."""
    os.environ["RAY_JOB_ID"] = "1"
    if fault := os.environ.get("RAY_FAULT"):
        raise RuntimeError(fault)


def remote(kind: type) -> Any:
    """The class of an actor; what it is started with is written down."""

    def make(*arguments: str) -> Any:
        actor = None if os.environ.get("RAY_BUSY") else kind(*arguments)
        call = lambda name: SimpleNamespace(remote=lambda *words: _ask(actor, name, *words))  # noqa: E731
        return SimpleNamespace(**{name: call(name) for name in ("begin", "read", "write")})

    def options(**chosen: Any) -> Any:
        Path(os.environ["RAY_OPTIONS"]).write_text(json.dumps(chosen))
        return SimpleNamespace(remote=make)

    return SimpleNamespace(options=options)


def _ask(actor: Any, name: str, *words: bytes) -> Future[Any]:
    return Future() if actor is None else _threads.submit(getattr(actor, name), *words)


def get(answer: Future[Any], timeout: float | None = None) -> Any:
    """What a call gave."""
    try:
        return answer.result(0.1 if os.environ.get("RAY_BUSY") else timeout)
    except Late:
        raise exceptions.GetTimeoutError from None


def kill(actor: Any) -> None:
    """The actor ends with this process."""


def shutdown() -> None:
    """There is nothing to leave."""
