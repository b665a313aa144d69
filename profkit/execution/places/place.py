"""One place where work runs: this machine, or a command prefix that starts a shell somewhere else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExecutionPlace:
    """One place. `start` is the command that starts a shell there, which reads from its standard input.

    The shell is always the last word, `sh` alone, so that no word of ours is quoted for somebody's login shell. `start`
    is empty for `local`. `title` is what people and results call it. `patience`: seconds until it answers; a queue may
    let it wait. `inherits`: what runs there gets this process's environment, so that secrets are taken out of it first.
    `try_it` is a line that shows whether it can be reached. `queues`: others may be served first, for hours; it leaves
    the queue where it is asked to end, and not where it is killed. `telling`: what stands in the line that
    says why it ended, where that is not the last one.
    """

    kind: str
    title: str
    start: tuple[str, ...] = ()
    patience: float = 60.0
    inherits: bool = False
    try_it: str | None = None
    queues: bool = False
    telling: str = ""

    @property
    def is_local(self) -> bool:
        """Whether this is the machine that profkit was called on, without anything between."""
        return self.kind == "local"
