"""One place where work runs: this machine, or a command prefix that starts a shell somewhere else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExecutionPlace:
    """One place. `start` is the command that starts a shell there, which reads from its standard input.

    The shell is always the last word, `sh` alone, so that no word of ours is quoted for somebody's login shell. `start`
    is empty for `local`. `title` is what people and results call it. `patience`: seconds until it answers; a queue may
    let it wait. `inherits`: what runs there gets this process's environment, so that secrets are taken out of it first.
    `gives_devices`: who starts the shell says which GPUs it sees.
    `try_it` is a line that shows whether it can be reached.
    """

    kind: str
    title: str
    start: tuple[str, ...] = ()
    patience: float = 60.0
    inherits: bool = False
    gives_devices: bool = False
    try_it: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether this is the machine that profkit was called on, without anything between."""
        return self.kind == "local"
