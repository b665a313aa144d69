"""One place where work runs: this machine, or a command prefix that starts a shell somewhere else."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.errors import UsageError


@dataclass(frozen=True)
class Rent:
    """What a place costs while it is held: dollars a second at most, for at most `limit` seconds, by what `source`."""

    price: float
    limit: float
    source: str


@dataclass(frozen=True)
class ExecutionPlace:
    """One place. `start` is the command that starts a shell there, which reads from its standard input.

    The shell is always the last word, `sh` alone, so that no word of ours is quoted for somebody's login shell. `start`
    is empty for `local`. `title` is what people and results call it. `patience`: seconds until it answers; a queue may
    let it wait. `inherits`: what runs there gets this process's environment, so that secrets are taken out of it first.
    `gives_devices`: who starts the shell says which GPUs it sees. `try_it` is a line that shows whether it can be
    reached. `rent`: it costs money by the second, so its client is given the time to end it, and what it may cost is
    said before it is started. `queues`: others may be served first, for hours; it leaves the queue where it is asked
    to end, and not where it is killed. `reason_mark`: what stands in the line that says why it ended, if not the last.
    `has_own_client`: its command is a program of ours, which writes its fault to a file.
    """

    kind: str
    title: str
    start: tuple[str, ...] = ()
    patience: float = 60.0
    inherits: bool = False
    gives_devices: bool = False
    try_it: str | None = None
    rent: Rent | None = None
    queues: bool = False
    reason_mark: str = ""
    has_own_client: bool = False

    @property
    def is_local(self) -> bool:
        """Whether this is the machine that profkit was called on, without anything between."""
        return self.kind == "local"

    @property
    def cost(self) -> str | None:
        """What it may cost, in a sentence; None where it is not rented."""
        if (rent := self.rent) is None:
            return None
        most = f"at most {rent.price * rent.limit:.2f} $ a container"
        return f"{self.title}: {most}: {rent.price:.2g} $/s for {rent.limit:g} s at most; {rent.source}"

    def refuse_devices(self) -> None:
        """Raises UsageError where GPUs are named for a place that is given its own."""
        if self.gives_devices:
            raise UsageError(
                f"{self.title} is given its GPUs there, and --gpus can name none",
                f"leave out --gpus, and name one place for each GPU: --on '{self.title},{self.title}'",
            )


def words_of(title: str, message: object, fix: object) -> tuple[str, str | None]:
    """A fault that a place tells of, and its fix, as words of that place."""
    text = quote_lines(str(message)[:4000]) if message else "it failed, and said no reason"
    line = " ".join(str(fix)[:2000].split()) if fix else ""
    return f"{title}: {text}", f"{line}   (said by {title})" if line else None


def quote_lines(text: str) -> str:
    """A text of a place: no line of it stands where a line of ours could, as one that begins with `fix:`."""
    return "\n  | ".join(text.splitlines() or [""])
